"""The workload's grader in the contender's own process, for the two that are not ours."""

import asyncio
from typing import Any

from graders import Engine
from graders.outcome import Score


class Rewards:
    """Scores texts of rows; one that cannot be graded has none."""

    def __init__(self, grader: dict[str, Any]) -> None:
        self._engine = Engine(grader)

    def __call__(self, texts: list[str], rows: list[dict[str, Any]]) -> list[float | None]:
        """The score of each text for the row beside it."""
        return asyncio.run(self._all(texts, rows))

    async def _all(self, texts: list[str], rows: list[dict[str, Any]]) -> list[float | None]:
        grades = (self._one(text, row) for text, row in zip(texts, rows, strict=True))
        return list(await asyncio.gather(*grades))

    async def _one(self, text: str, row: dict[str, Any]) -> float | None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        sample = {"output_text": text, "output_tools": [], "choices": [choice]}
        item = {name: value for name, value in row.items() if name not in ("messages", "tools")}
        outcome = (await self._engine.grade(sample, item)).outcome
        return outcome.value if isinstance(outcome, Score) else None

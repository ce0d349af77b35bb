"""Grading with a fake judge, for the tests of every grader that asks one."""

import asyncio
from typing import Any

from bench.fake_judge import FakeJudge, Script
from graders import Engine, Graded, Outcome, parse_grader
from graders.group import Group
from graders.http import HttpConfig
from graders.judges.config import JudgeConfig
from graders.services import ServicesConfig


def services(server: FakeJudge, **changes: Any) -> ServicesConfig:
    """A configuration in which every model is this server; `changes` are fields of the judge."""
    fields = {"model": "*", "base_url": server.base_url, "timeout_s": 20, "backoff_s": 0.001}
    judge = JudgeConfig.model_validate(fields | changes)
    return ServicesConfig(judges=(judge,), http=HttpConfig(allow_hosts=("127.0.0.1",)))


def judged(
    spec: dict[str, Any],
    script: Script,
    output_text: str = "an answer",
    item: dict[str, Any] | None = None,
    **changes: Any,
) -> tuple[Graded, FakeJudge]:
    """Grade one completion with a judge that follows the script."""
    with FakeJudge(script) as server:

        async def run() -> Graded:
            engine = Engine(parse_grader(spec), services(server, **changes))
            try:
                return await engine.grade({"output_text": output_text}, item or {})
            finally:
                await engine.close()

        return asyncio.run(run()), server


def judged_group(
    spec: dict[str, Any],
    script: Script,
    texts: list[str],
    item: dict[str, Any] | None = None,
    **changes: Any,
) -> tuple[list[Graded], FakeJudge]:
    """Grade the completions of one prompt together."""
    with FakeJudge(script) as server:

        async def run() -> list[Graded]:
            engine = Engine(parse_grader(spec), services(server, **changes))
            group = Group(len(texts))
            try:
                grades = (engine.grade({"output_text": t}, item or {}, group=group) for t in texts)
                return list(await asyncio.gather(*grades))
            finally:
                await engine.close()

        return asyncio.run(run()), server


def outcome(*arguments: Any, **changes: Any) -> Outcome:
    """The outcome of `judged` alone."""
    return judged(*arguments, **changes)[0].outcome


def score_model(**changes: Any) -> dict[str, Any]:
    """A judge that rates the completion."""
    messages = [{"role": "user", "content": "rate {{sample.output_text}}"}]
    return {"type": "score_model", "name": "j", "model": "judge", "input": messages} | changes

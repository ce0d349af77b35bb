"""A step's samples as compressed JSONL: one line a completion, nothing left out."""

import io
import json
from pathlib import Path

import zstandard

from graders.outcome import to_wire
from trainer.sampling import Rollout


def write(
    path: Path, rollouts: list[Rollout], advantages: list[float] | None, *, group_size: int
) -> int:
    """Write ``{step}.jsonl.zst``.

    Args:
        advantages: one for each rollout; ``None`` for validation samples.
        group_size: completions of each prompt, which follow each other.

    Returns:
        How many lines were written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, zstandard.ZstdCompressor(level=3).stream_writer(raw) as packed:
        lines = io.TextIOWrapper(packed, encoding="utf-8")
        for index, rollout in enumerate(rollouts):
            advantage = None if advantages is None else advantages[index]
            line = _line(rollout, advantage, index // group_size)
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
        lines.flush()
        lines.detach()
    return len(rollouts)


def _line(rollout: Rollout, advantage: float | None, group: int) -> dict[str, object]:
    return {
        "row": rollout.row.index,
        "group": group,
        "messages": rollout.row.messages,
        "text": rollout.text,
        "token_ids": rollout.completion.token_ids,
        "logprobs": [round(x, 5) for x in rollout.completion.logprobs],
        "truncated": rollout.completion.truncated,
        "outcome": to_wire(rollout.outcome),
        "advantage": advantage,
        "grader_latency_s": rollout.latency_s,
        "traces": [trace.wire() for trace in rollout.traces],
    }

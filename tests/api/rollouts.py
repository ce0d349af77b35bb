"""Rollout files as the trainer writes them, recorded as the supervisor does."""

import json
from typing import Any

import zstandard
from sqlalchemy.orm import Session

from core import samples
from core.models import Rollout
from core.store import ObjectStore


def line(row: int, text: str, value: float | None = 0.5, **changes: Any) -> dict[str, Any]:
    """One sample with a score, or with an abstention where `value` is None."""
    score = {"outcome": "score", "value": value, "sub_scores": {}, "notes": []}
    outcome = {"outcome": "abstain", "reason": "unsure"} if value is None else score
    return {
        "row": row,
        "messages": [{"role": "user", "content": f"row {row}"}],
        "text": text,
        "token_ids": [1, 2, 3],
        "logprobs": [-0.1, -0.2, -0.3],
        "truncated": False,
        "outcome": outcome,
        "advantage": 0.25,
        "grader_latency_s": 0.01,
        "traces": [{"grader": "exact", "type": "string_check", "score": value}],
        **changes,
    }


def failure(kind: str, grader: str, **sub_scores: float) -> dict[str, Any]:
    """An outcome without a score."""
    return {
        "outcome": "failure",
        "kind": kind,
        "detail": "d",
        "grader": grader,
        "sub_scores": sub_scores,
    }


def packed(lines: list[dict[str, Any]]) -> bytes:
    """Compress samples as a rollout file."""
    text = "".join(json.dumps(each) + "\n" for each in lines)
    return zstandard.ZstdCompressor().compress(text.encode())


def add_rollouts(
    session: Session,
    store: ObjectStore,
    job_id: str,
    step: int,
    lines: list[dict[str, Any]],
    *,
    split: str = "train",
    indexed: bool = True,
) -> str:
    """Store the samples of a step, with or without the rows that find them; returns the key."""
    key, content = f"jobs/{job_id}/rollouts/{step}-{split}-1.jsonl.zst", packed(lines)
    store.put_bytes(key, content)
    session.add(
        Rollout(
            job_id=job_id,
            step=step,
            split=split,
            object_key=key,
            count=len(lines),
            bytes=len(content),
            index_state="indexed" if indexed else "waiting",
        )
    )
    if indexed:
        raw = [json.dumps(each).encode() for each in lines]
        rows = [*samples.rows_of(raw, job_id=job_id, step=step, split=split)]
        samples.replace(session, rows, job_id=job_id, step=step, split=split)
    return key

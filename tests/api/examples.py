"""Bodies and rows that several tests use."""

import json
from typing import Any

import httpx
import openai
from openai.types import FileObject
from sqlalchemy.orm import Session, sessionmaker

from core.models import Checkpoint, Job

GRADER: dict[str, Any] = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}
METHOD: dict[str, Any] = {"type": "reinforcement", "reinforcement": {"grader": GRADER}}
ROWS = [
    {"messages": [{"role": "user", "content": f"{n}+1?"}], "answer": str(n + 1)} for n in range(12)
]


def jsonl(rows: list[dict[str, Any]] = ROWS) -> bytes:
    """Write rows as JSONL."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def upload(client: openai.OpenAI, rows: list[dict[str, Any]] = ROWS) -> FileObject:
    """Upload a training file."""
    return client.files.create(file=("rows.jsonl", jsonl(rows)), purpose="fine-tune")


def job_body(training_file: str, **changes: Any) -> dict[str, Any]:
    """A body that creates a job, with `changes`; a change to None leaves the field out."""
    body = {"model": "base-1", "training_file": training_file, "method": METHOD, **changes}
    return {name: value for name, value in body.items() if value is not None}


def set_status(sessions: sessionmaker[Session], job_id: str, status: str) -> None:
    """Put a job into a state, as a worker would have done."""
    with sessions.begin() as session:
        job = session.get_one(Job, job_id)
        session.execute(Job.__table__.update().where(Job.id == job.id).values(status=status))


def add_checkpoint(
    sessions: sessionmaker[Session], job_id: str, step: int, *, name: str, final: bool = False
) -> str:
    """Store a checkpoint's row as a worker does and return its id."""
    with sessions.begin() as session:
        row = Checkpoint(
            job_id=job_id,
            project_id=session.get_one(Job, job_id).project_id,
            phase="rl",
            step=step,
            name=name,
            object_prefix=f"jobs/{job_id}/checkpoints/{step}",
            kind="adapter",
            metrics={"step": step, "full_valid_mean_reward": 0.5},
            is_final=final,
            has_state=True,
            created_at=1_800_000_000 + step,
        )
        session.add(row)
        session.flush()
        return row.id


def reinforcement(**changes: Any) -> dict[str, Any]:
    """The method of a job, with `changes` to its block."""
    return {"type": "reinforcement", "reinforcement": {"grader": GRADER, **changes}}


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the error of an answer, having checked its status and its envelope."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert response.headers["x-request-id"].startswith("req_")
    return error

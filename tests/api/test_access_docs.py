"""The examples in docs/access.md do what they say."""

import re
from pathlib import Path

import openai
from sqlalchemy.orm import Session, sessionmaker

from core.keys import SCOPES
from core.limits import LIMIT_NAMES
from tests.api.access import member
from tests.api.examples import add_checkpoint, job_body, upload
from tests.api.running import Api

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()


def test_every_scope_and_limit() -> None:
    for name in (*SCOPES, *LIMIT_NAMES):
        assert f"| `{name}` |" in PAGE


def test_the_examples_run(api: Api, client: openai.OpenAI, sessions: sessionmaker[Session]) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    add_checkpoint(sessions, job.id, 1, name="ft:base-1:org-rft:support:a1B2c3D4")
    admin = member(api, sessions, "admin", "all")
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        # Only the block about sharing makes a client of the project that owns the model.
        key = api.key if "client = OpenAI(" in block else admin.key
        code = block.replace("http://127.0.0.1:8000", api.url).replace("sk-rft-…", key)
        exec(compile(code, "access.md", "exec"), names)
    assert names["limits"]["live_jobs"]["limit"] == 4  # type: ignore[index]
    assert names["entry"].type == "project.created"  # type: ignore[attr-defined]

"""`rft-server projects` and `rft-server keys`: what they do, and that the audit log has it."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.db import make_engine, session_factory
from core.errors import InvalidKey
from core.models import AuditEntry, Project
from tests.core.principals import authenticate
from tests.core.stack.commands import Command


@pytest.fixture
def session(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session on the database that the command uses."""
    monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
    engine = make_engine(sqlite_url)
    with session_factory(engine)() as opened:
        yield opened
    engine.dispose()


def actions(session: Session) -> list[str]:
    """What the audit log has, oldest first."""
    query = select(AuditEntry).order_by(AuditEntry.seq)
    entries = session.scalars(query).all()
    assert all(entry.key_id is None and entry.request_id is None for entry in entries)
    return [entry.action for entry in entries]


def test_a_project_from_making_to_archiving(command: Command, session: Session) -> None:
    project_id = command("projects", "create", "team").out.strip()
    assert f"{project_id}  team  active" in command("projects", "list").out
    secret = command("keys", "create", "ci", "--project", "team").out.strip()
    assert authenticate(session, secret).project_id == project_id
    assert command("projects", "rename", "team", "crew").code == 0
    assert command("projects", "archive", "crew").code == 0
    assert f"{project_id}  crew  archived" in command("projects", "list").out
    session.rollback()
    with pytest.raises(InvalidKey, match="archived"):
        authenticate(session, secret)
    assert "archived" in command("keys", "create", "--project", project_id).err
    assert actions(session) == [
        "project.created",
        "api_key.created",
        "project.updated",
        "project.archived",
    ]
    assert secret not in str([entry.data for entry in session.scalars(select(AuditEntry))])


def test_a_new_name_makes_a_project_and_its_key(command: Command, session: Session) -> None:
    command("keys", "create", "boss", "--project", "new", "--scope", "admin")
    key_id = command("keys", "list").out.split()[0]
    assert [command("keys", "revoke", key_id).code for _ in range(2)] == [0, 0]
    assert actions(session) == ["project.created", "api_key.created", "api_key.deleted"]
    assert (
        "There is no project 'proj_nil'" in command("keys", "create", "--project", "proj_nil").err
    )


def test_limits(command: Command, session: Session) -> None:
    command("projects", "create", "team")
    shown = command("projects", "limits", "team", "live_jobs=4", "gpu_seconds=unlimited").out
    assert "live_jobs  4  set by project  used 0" in shown
    assert "gpu_seconds  unlimited  set by project  used 0" in shown
    assert "requests_per_minute  unlimited  set by server\n" in shown
    assert "set by server" in command("projects", "limits", "team", "live_jobs=default").out
    assert session.scalars(select(Project.limits)).one() == {"gpu_seconds": "unlimited"}
    for wrong, words in (
        ("live_jobs", "write name=number"),
        ("live_job=1", "did you mean 'live_jobs'"),
        ("live_jobs=many", "whole number"),
        (f"live_jobs={2**63}", "whole number"),
    ):
        result = command("projects", "limits", "team", wrong)
        assert result.code == 1 and words in result.err
    assert actions(session) == ["project.created", "rate_limit.updated", "rate_limit.updated"]


@pytest.mark.parametrize(
    "words",
    [
        ("projects", "create", " "),
        ("projects", "create", "two\nlines"),
        ("projects", "create", "n" * 101),
        ("projects", "rename", "team", ""),
        ("keys", "create", ""),
        ("keys", "create", "--project", ""),
        ("keys", "create", "--days", "36501"),
    ],
)
def test_what_would_spoil_the_lists_is_refused(
    command: Command, session: Session, words: tuple[str, ...]
) -> None:
    command("projects", "create", "team")
    assert command(*words).code == 2
    assert actions(session) == ["project.created"]
    command("keys", "create", "far", "--days", "36500")
    assert "valid until 2" in command("keys", "list").out

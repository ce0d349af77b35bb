"""What `rft-server keys` and `rft-server projects` share: a transaction, and finding projects."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.audit import record_command
from core.db import make_engine, session_factory
from core.errors import InvalidRequest
from core.models import ApiKey, Project
from core.projects import create_project, find_project
from core.stack.environment import find_settings


@contextmanager
def transaction(folder: Path) -> Iterator[Session]:
    """Open a transaction on the stack's database; it commits at the end of the block."""
    engine = make_engine(find_settings(folder).database_url)
    try:
        with session_factory(engine).begin() as session:
            yield session
    finally:
        engine.dispose()


def project_for_key(session: Session, name_or_id: str) -> Project:
    """Return the project of this name or id; a new name makes one."""
    named = select(Project.id).where(Project.name == name_or_id, Project.archived_at.is_(None))
    is_new = session.get(Project, name_or_id) is None and session.scalar(named.limit(1)) is None
    if is_new and not name_or_id.startswith("proj_"):
        project = create_project(session, name_or_id)
        record_command(session, "project.created", project)
        return project
    project = find_project(session, name_or_id)
    if project.archived_at is not None:
        raise InvalidRequest(f"Project {project.id} is archived; name another one.")
    return project


def record_key(session: Session, action: str, key: ApiKey) -> None:
    """Note in the audit log what the command did to a key."""
    record_command(session, f"api_key.{action}", key)

"""Projects: made, found by name, renamed, limited and archived."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.eval_runs import live_runs
from core.limits import HIGHEST, LIMIT_NAMES, UNLIMITED, live_jobs, lock_project
from core.models import Project
from core.nearest import nearest


def create_project(session: Session, name: str) -> Project:
    """Add a project and return it with its id."""
    project = Project(name=name)
    session.add(project)
    session.flush()
    return project


def find_project(session: Session, name_or_id: str) -> Project:
    """Return the project of this id, or the one active project of this name.

    Raises `NotFound`, and `InvalidRequest` for a name that several projects have.
    """
    by_id = session.get(Project, name_or_id)
    if by_id is not None:
        return by_id
    active = Project.archived_at.is_(None)
    query = select(Project).where(Project.name == name_or_id, active).limit(2)
    found = session.scalars(query).all()
    if len(found) == 2:
        raise InvalidRequest(f"Several projects are named {name_or_id!r}; name one by its id.")
    if not found:
        raise NotFound(f"There is no project {name_or_id!r}; `rft-server projects list` has them.")
    return found[0]


def archive_project(session: Session, project: Project) -> None:
    """End a project: its keys are refused from now on, what it stores stays.

    Raises `InvalidRequest` while it has unfinished jobs or runs of evals, which nobody could then
    cancel.
    """
    if project.archived_at is not None:
        return
    lock_project(session, project.id)  # a job that is being created meanwhile must not be missed
    unfinished = {
        "jobs or dry runs": live_jobs(session, project.id),
        "runs of evals": live_runs(session, project.id),
    }
    for what, alive in unfinished.items():
        if alive:
            raise InvalidRequest(
                f"Project {project.id} has {alive} unfinished {what}; cancel them or wait,"
                " then archive it.",
                code="project_in_use",
            )
    project.archived_at = now()
    session.flush()


def change_limits(project: Project, changes: Mapping[str, int | str | None]) -> None:
    """Set some of the project's limits: a number, "unlimited", or None for the server's own.

    Raises `InvalidRequest` for an unknown name or value.
    """
    limits: dict[str, Any] = dict(project.limits or {})
    for name, value in changes.items():
        _check(name, value)
        if value is None:
            limits.pop(name, None)
        else:
            limits[name] = value
    project.limits = limits or None


def _check(name: str, value: int | str | None) -> None:
    if name not in LIMIT_NAMES:
        guess = nearest(name, list(LIMIT_NAMES))
        hint = f"did you mean {guess!r}?" if guess else f"limits are {', '.join(LIMIT_NAMES)}."
        raise InvalidRequest(f"There is no limit {name!r}; {hint}", param="limits")
    number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HIGHEST
    if not (value is None or value == UNLIMITED or number):
        raise InvalidRequest(
            f"The limit {name} must be a whole number from 0 to 2^62, or {UNLIMITED!r}.",
            param="limits",
        )

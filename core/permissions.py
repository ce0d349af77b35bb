"""Checkpoint permissions: another project may use a trained model, until this is taken back."""

from collections.abc import Sequence

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import InvalidRequest
from core.limits import lock_project
from core.models import Checkpoint, CheckpointPermission, Project


def shared_with(project_id: str) -> Select[Checkpoint]:
    """Select the stored models of other projects that this project may use."""
    return (
        select(Checkpoint)
        .join(
            CheckpointPermission,
            (CheckpointPermission.model == Checkpoint.name)
            & (CheckpointPermission.project_id == Checkpoint.project_id),
        )
        .where(
            CheckpointPermission.grantee_id == project_id,
            CheckpointPermission.deleted_at.is_(None),
            Checkpoint.deleted_at.is_(None),
        )
    )


def grantees(model: str) -> Select[str]:
    """Select the ids of the projects that may use a model of another one."""
    live = CheckpointPermission.deleted_at.is_(None)
    return select(CheckpointPermission.grantee_id).where(CheckpointPermission.model == model, live)


def usable_by(session: Session, project_id: str, name: str) -> Checkpoint | None:
    """Return the stored model of this name if the project owns it or may use it."""
    own = select(Checkpoint).where(
        Checkpoint.project_id == project_id,
        Checkpoint.name == name,
        Checkpoint.deleted_at.is_(None),
    )
    found = session.scalar(own)
    return found or session.scalar(shared_with(project_id).where(Checkpoint.name == name))


def grant(
    session: Session, checkpoint: Checkpoint, project_ids: Sequence[str]
) -> list[CheckpointPermission]:
    """Let projects use the model; one that may already keeps its permission.

    Raises `InvalidRequest` that names each project that does not exist or is archived, and the
    owner, which needs no permission.
    """
    wanted = list(dict.fromkeys(project_ids))
    _refuse(session, checkpoint, wanted)
    lock_project(session, checkpoint.project_id)  # two that grant the same must not both add it
    there = {
        each.grantee_id: each
        for each in session.scalars(
            select(CheckpointPermission).where(
                CheckpointPermission.model == checkpoint.name,
                CheckpointPermission.grantee_id.in_(wanted),
                CheckpointPermission.deleted_at.is_(None),
            )
        )
    }
    new = [
        CheckpointPermission(
            project_id=checkpoint.project_id, model=checkpoint.name, grantee_id=each
        )
        for each in wanted
        if each not in there
    ]
    session.add_all(new)
    session.flush()
    granted = there | {each.grantee_id: each for each in new}
    return [granted[each] for each in wanted]


def revoke_all(session: Session, checkpoint: Checkpoint) -> None:
    """Take back every permission of a model that is being deleted."""
    live = CheckpointPermission.deleted_at.is_(None)
    session.execute(
        update(CheckpointPermission)
        .where(CheckpointPermission.model == checkpoint.name, live)
        .values(deleted_at=now())
    )


def _refuse(session: Session, checkpoint: Checkpoint, wanted: Sequence[str]) -> None:
    active = select(Project.id).where(Project.id.in_(wanted), Project.archived_at.is_(None))
    known = set(session.scalars(active))
    unknown = [each for each in wanted if each not in known]
    if unknown:
        raise InvalidRequest(
            f"invalid project_ids: {', '.join(unknown)}. No such project, or it is archived;"
            " `rft-server projects list` shows all.",
            param="project_ids",
        )
    if checkpoint.project_id in wanted:
        raise InvalidRequest(
            f"invalid project_ids: {checkpoint.project_id}. It owns the model and needs no"
            " permission; name other projects.",
            param="project_ids",
        )

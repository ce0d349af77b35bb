"""Who may use a model, on both databases."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.errors import InvalidRequest
from core.models import Checkpoint, CheckpointPermission
from core.permissions import grant, revoke_all, shared_with, usable_by
from core.projects import archive_project, create_project
from tests.core.jobs import MakeJob

NAME = "ft:base:org:s:1"


@pytest.fixture
def model_id(factory: sessionmaker[Session], project_id: str, make_job: MakeJob) -> str:
    """A trained model."""
    job_id = make_job(status="succeeded")
    with factory.begin() as session:
        model = Checkpoint(
            job_id=job_id,
            project_id=project_id,
            phase="rl",
            step=1,
            name=NAME,
            object_prefix="p",
            kind="adapter",
            metrics={},
            is_final=True,
            has_state=True,
        )
        session.add(model)
        session.flush()
        return model.id


@pytest.fixture
def other_id(factory: sessionmaker[Session]) -> str:
    """Another project."""
    with factory.begin() as session:
        return create_project(session, "other").id


def test_a_model_is_usable_until_its_permission_ends(
    factory: sessionmaker[Session], project_id: str, model_id: str, other_id: str
) -> None:
    with factory.begin() as session:
        model = session.get_one(Checkpoint, model_id)
        assert usable_by(session, project_id, NAME) is model
        assert usable_by(session, other_id, NAME) is None
        first = grant(session, model, [other_id, other_id])
        assert grant(session, model, [other_id]) == first and len(first) == 1
        assert usable_by(session, other_id, NAME) is model
        assert session.scalars(shared_with(other_id)).all() == [model]
        assert session.scalars(shared_with(project_id)).all() == []
        first[0].deleted_at = now()
        session.flush()
        assert usable_by(session, other_id, NAME) is None
        again = grant(session, model, [other_id])
        assert again[0].id != first[0].id and usable_by(session, other_id, NAME) is model


def test_a_deleted_model_is_usable_by_nobody(
    factory: sessionmaker[Session], project_id: str, model_id: str, other_id: str
) -> None:
    with factory.begin() as session:
        model = session.get_one(Checkpoint, model_id)
        grant(session, model, [other_id])
        model.deleted_at = now()
        session.flush()
        assert usable_by(session, other_id, NAME) is None
        assert usable_by(session, project_id, NAME) is None
        revoke_all(session, model)
        ended = session.scalars(select(CheckpointPermission.deleted_at)).all()
        assert ended and None not in ended


def test_an_archived_project_is_granted_nothing(
    factory: sessionmaker[Session], model_id: str, other_id: str
) -> None:
    with factory.begin() as session:
        third = create_project(session, "third")
        archive_project(session, third)
        model = session.get_one(Checkpoint, model_id)
        with pytest.raises(InvalidRequest, match=f"invalid project_ids: {third.id}[.]"):
            grant(session, model, [other_id, third.id])
        assert session.scalars(select(CheckpointPermission)).all() == []

"""A project and jobs in any state."""

from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.keys import create_project
from core.models import Job
from tests.core.jobs import MakeJob


@pytest.fixture
def project_id(factory: sessionmaker[Session]) -> str:
    with factory.begin() as session:
        return create_project(session, "tests").id


@pytest.fixture
def make_job(factory: sessionmaker[Session], project_id: str) -> MakeJob:
    """Return a function that inserts a job with the given columns and returns its id."""

    def make(**columns: Any) -> str:
        values = {
            "project_id": project_id,
            "status": "queued",
            "model": "base",
            "method": {},
            "training_file": "file-a",
            "seed": 1,
        }
        with factory.begin() as session:
            job = Job(**{**values, **columns})
            session.add(job)
            session.flush()
            return job.id

    return make

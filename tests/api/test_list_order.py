"""What was made within the same second is listed in the order in which it was made."""

from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.pagination import Page
from api.services import files, jobs, keys
from api.tenancy import Tenant
from core.keys import create_project
from core.models import ApiKey, File, Job
from tests.api.examples import METHOD

SECOND = 1_800_000_000
KINDS: dict[str, type[Job | File | ApiKey]] = {"jobs": Job, "files": File, "keys": ApiKey}


def columns(kind: str, number: int) -> dict[str, Any]:
    """What a row of the kind needs besides its project and time."""
    return {
        "jobs": {"model": "m", "method": METHOD, "training_file": "file-1", "seed": 1},
        "files": {
            **{"filename": "a", "purpose": "fine-tune", "bytes": 1, "sha256": "0"},
            "object_key": "k",
        },
        "keys": {"name": "k", "hash": str(number), "prefix": "sk", "scopes": ["all"]},
    }[kind]


def make(factory: sessionmaker[Session], kind: str, count: int) -> tuple[str, list[str]]:
    """Make rows within one second, some in one transaction, and return project and ids."""
    rows = []
    with factory.begin() as session:
        project_id = create_project(session, "p").id
    for start in range(0, count, 3):
        with factory.begin() as session:
            for number in range(start, min(start + 3, count)):
                values = columns(kind, number)
                row = KINDS[kind](project_id=project_id, created_at=SECOND, **values)
                session.add(row)
                rows.append(row)
    return project_id, [row.id for row in rows]


def page_of(kind: str, tenant: Tenant, **page: Any) -> Page[Any]:
    if kind == "jobs":
        return jobs.list_jobs(tenant, metadata=None, **page)
    if kind == "files":
        return files.list_files(tenant, order="desc", purpose=None, **page)
    return keys.list_keys(tenant, **page)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_one_second_are_listed_newest_first(
    factory: sessionmaker[Session], kind: str
) -> None:
    project_id, made = make(factory, kind, 3)
    with factory() as session:
        page = page_of(kind, Tenant(session, project_id), after=None, limit=None)
    assert [row.id for row in page.rows] == made[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_go_on_within_one_second(factory: sessionmaker[Session], kind: str) -> None:
    project_id, made = make(factory, kind, 11)
    seen: list[str] = []
    more = True
    while more:
        after = seen[-1] if seen else None
        with factory() as session:
            page = page_of(kind, Tenant(session, project_id), after=after, limit=4)
        seen += [row.id for row in page.rows]
        more = page.has_more
    assert seen == made[::-1]

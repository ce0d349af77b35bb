"""Projects and keys for the tests of who may do what."""

from dataclasses import dataclass

import httpx
from sqlalchemy.orm import Session, sessionmaker

from core.keys import create_key, create_project
from tests.api.running import Api


@dataclass(frozen=True)
class Member:
    """A project and a client with a key of it."""

    project_id: str
    key: str
    http: httpx.Client


def member(
    api: Api, sessions: sessionmaker[Session], *scopes: str, project_id: str | None = None
) -> Member:
    """Make a key of a project, a new one unless named; the scope is `all` unless given."""
    with sessions.begin() as session:
        owner = project_id or create_project(session, "other").id
        secret = create_key(session, owner, "key", scopes=scopes or ("all",))[1]
    headers = {"authorization": f"Bearer {secret}"}
    return Member(owner, secret, httpx.Client(base_url=api.url, headers=headers, timeout=30))

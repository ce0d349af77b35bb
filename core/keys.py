"""Projects and API keys: a secret is shown once and stored as its SHA-256."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import InvalidKey, InvalidRequest
from core.ids import random_text
from core.models import ApiKey, Project

PREFIX = "sk-rft-"
#: A key with this scope may do everything in its project.
ALL = "all"
#: What a key may be limited to, and what each scope allows.
SCOPES = {
    ALL: "everything in the project",
    "read": "every GET",
    "write": "create, change and delete files, jobs and models",
    "inference": "chat completions",
    "keys": "list, create and revoke API keys",
}


@dataclass(frozen=True)
class Principal:
    """Who makes a request: every query is filtered by `project_id`."""

    project_id: str
    key_id: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Say whether the key carries the scope."""
        return ALL in self.scopes or scope in self.scopes


def create_project(session: Session, name: str) -> Project:
    """Add a project and return it with its id."""
    project = Project(name=name)
    session.add(project)
    session.flush()
    return project


def create_key(
    session: Session,
    project_id: str,
    name: str,
    *,
    scopes: Sequence[str] = (ALL,),
    expires_at: int | None = None,
) -> tuple[ApiKey, str]:
    """Add a key and return it with its secret, which cannot be read again later.

    Raises InvalidRequest for a scope that is not in `SCOPES`.
    """
    _refuse_unknown(scopes)
    secret = PREFIX + random_text(40)
    key = ApiKey(
        project_id=project_id,
        name=name,
        hash=_hash(secret),
        prefix=secret[: len(PREFIX) + 4],
        scopes=list(scopes),
        expires_at=expires_at,
    )
    session.add(key)
    session.flush()
    return key, secret


def revoke_key(session: Session, key: ApiKey) -> None:
    """End a key at once; a revoked key stays revoked."""
    key.revoked_at = key.revoked_at or now()
    session.flush()


def authenticate(session: Session, secret: str) -> Principal:
    """Return whom the secret belongs to; raise InvalidKey when unknown, revoked or expired."""
    # Keys are long and random: an unsalted hash cannot be guessed and can be looked up directly.
    key = session.scalar(select(ApiKey).where(ApiKey.hash == _hash(secret)))
    if key is None:
        raise InvalidKey("Incorrect API key provided; create one with `rft-server keys create`.")
    if key.revoked_at is not None:
        raise InvalidKey(f"API key {key.prefix}… was revoked; use another key.")
    if key.expires_at is not None and key.expires_at <= now():
        raise InvalidKey(f"API key {key.prefix}… has expired; create a new one.")
    return Principal(key.project_id, key.id, frozenset(key.scopes))


def _refuse_unknown(scopes: Sequence[str]) -> None:
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise InvalidRequest(
            f"The scope {unknown[0]!r} is not one of {', '.join(SCOPES)}.", param="scopes"
        )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

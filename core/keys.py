"""API keys: a secret is shown once and stored as its SHA-256."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.errors import InvalidKey, InvalidRequest
from core.ids import random_text
from core.limits import NO_LIMITS, Limits
from core.models import ApiKey, Project
from core.projects import create_project as create_project

PREFIX = "sk-rft-"
#: A key with this scope may do everything in its project.
ALL = "all"
#: A key with this scope manages all projects; what is inside them needs the other scopes.
ADMIN = "admin"
KEYS = "keys"
#: What a key may be limited to, and what each scope allows.
SCOPES = {
    ALL: "everything in the project",
    "read": "every GET outside of /v1/organization",
    "write": "create, change and delete files, jobs and models",
    "inference": "chat completions",
    KEYS: "manage API keys and retention, read limits and the audit log",
    ADMIN: "manage all projects, their keys and limits, read the whole audit log",
}


@dataclass(frozen=True)
class Principal:
    """Who makes a request: every query is filtered by `project_id`."""

    project_id: str
    key_id: str
    scopes: frozenset[str]
    project_name: str = field(default="", compare=False)
    limits: Limits = field(default=NO_LIMITS, compare=False)

    def may(self, scope: str) -> bool:
        """Say whether the key carries the scope; `all` ends at the project's own walls."""
        if scope == ADMIN:
            return ADMIN in self.scopes
        if scope == KEYS and ADMIN in self.scopes:
            return True
        return ALL in self.scopes or scope in self.scopes


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
    refuse_unknown(scopes)
    secret = PREFIX + random_text(40)
    key = ApiKey(
        project_id=project_id,
        name=name,
        hash=hash_of(secret),
        prefix=secret[: len(PREFIX) + 4],
        scopes=list(dict.fromkeys(scopes)),
        expires_at=expires_at,
    )
    session.add(key)
    session.flush()
    return key, secret


def revoke_key(session: Session, key: ApiKey) -> None:
    """End a key at once; a revoked key stays revoked."""
    key.revoked_at = key.revoked_at or now()
    session.flush()


class KnownKey(NamedTuple):
    """What the database holds of a key and its project."""

    id: str
    project_id: str
    prefix: str
    scopes: list[str]
    expires_at: int | None
    revoked_at: int | None
    project_name: str
    limits: dict[str, Any] | None
    archived_at: int | None


_LOOK_UP = (
    select(
        ApiKey.hash,
        ApiKey.id,
        ApiKey.project_id,
        ApiKey.prefix,
        ApiKey.scopes,
        ApiKey.expires_at,
        ApiKey.revoked_at,
        Project.name,
        Project.limits,
        Project.archived_at,
    )
    .join(Project, ApiKey.project_id == Project.id)
    .where(ApiKey.hash.in_(bindparam("hashes", expanding=True)))
)


def hash_of(secret: str) -> str:
    """Return what is stored of a secret.

    Keys are long and random: an unsalted hash cannot be guessed and can be looked up directly.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def look_up(connection: Connection, hashes: Sequence[str]) -> dict[str, KnownKey]:
    """Return the keys with these hashes, revoked and expired ones included."""
    rows = connection.execute(_LOOK_UP, {"hashes": list(hashes)})
    return {row[0]: KnownKey(*row[1:]) for row in rows}


def principal_of(key: KnownKey | None, *, limits: Limits = NO_LIMITS) -> Principal:
    """Return whom the key belongs to, with the server's `limits` as its project changes them.

    Raises InvalidKey for a key that is unknown, revoked or expired, or whose project is archived.
    """
    if key is None:
        raise InvalidKey("Incorrect API key provided; create one with `rft-server keys create`.")
    if key.revoked_at is not None:
        raise InvalidKey(f"API key {key.prefix}… was revoked; use another key.")
    if key.expires_at is not None and key.expires_at <= now():
        raise InvalidKey(f"API key {key.prefix}… has expired; create a new one.")
    if key.archived_at is not None:
        raise InvalidKey(
            f"The project of API key {key.prefix}… is archived; use a key of another project."
        )
    return Principal(
        project_id=key.project_id,
        key_id=key.id,
        scopes=frozenset(key.scopes),
        project_name=key.project_name,
        limits=limits.changed(key.limits),
    )


def note_used(session: Session, used: Mapping[str, int]) -> None:
    """Record when keys were last used: unix seconds by key id; a time never goes back."""
    for key_id, at in sorted(used.items()):  # in one order, so that two processes do not deadlock
        later = (ApiKey.last_used_at.is_(None)) | (ApiKey.last_used_at < at)
        session.execute(update(ApiKey).where(ApiKey.id == key_id, later).values(last_used_at=at))


def refuse_unknown(scopes: Sequence[str]) -> None:
    """Raise InvalidRequest that names the first scope that is not in `SCOPES`."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise InvalidRequest(
            f"The scope {unknown[0]!r} is not one of {', '.join(SCOPES)}.", param="scopes"
        )

"""API keys of a project."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from api.schemas.common import ApiObject, RequestBody
from core.clock import now
from core.keys import ADMIN, ALL, SCOPES
from core.models import ApiKey

#: The last second of the year 9999.
LATEST = 253_402_300_799

Scopes = Annotated[list[str], Field(min_length=1)]


class CreateKey(RequestBody):
    """The body that creates a key."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[str], Field(min_length=1, default_factory=lambda: [ALL])]
    expires_at: Annotated[int, Field(le=LATEST)] | None = None

    @field_validator("scopes")
    @classmethod
    def _known(cls, scopes: list[str]) -> list[str]:
        return known_scopes(scopes)

    @field_validator("expires_at")
    @classmethod
    def _in_the_future(cls, expires_at: int | None) -> int | None:
        if expires_at is not None and expires_at <= now():
            raise ValueError("it must be a unix time in the future, in seconds")
        return expires_at


class UpdateKey(RequestBody):
    """The body that changes a key: what it may do, and how many seconds from now it is good."""

    scopes: Scopes | None = None
    expires_in_seconds: Annotated[int, Field(gt=0, le=LATEST // 2)] | None = None

    @field_validator("scopes")
    @classmethod
    def _known(cls, scopes: list[str] | None) -> list[str] | None:
        return None if scopes is None else known_scopes(scopes)


def known_scopes(scopes: list[str]) -> list[str]:
    """Return the scopes in order, once each; raises ValueError for an unknown one."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"the scope {scope!r} is not one of {', '.join(SCOPES)}")
    return sorted(set(scopes))


class KeyObject(ApiObject):
    """A key without its secret; `redacted_value` is its beginning.

    `last_used_at` lags behind by up to a minute.
    """

    object: Literal["organization.api_key"] = "organization.api_key"
    name: str
    redacted_value: str
    scopes: list[str]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None

    @classmethod
    def of(cls, row: ApiKey) -> "KeyObject":
        """Show one database row."""
        return cls(**_shown(row))


class CreatedKey(KeyObject):
    """A new key with its secret, which is shown this once."""

    value: str

    @classmethod
    def with_secret(cls, row: ApiKey, secret: str) -> "CreatedKey":
        """Show a row that was just created."""
        return cls(**_shown(row), value=secret)


class ServiceAccount(ApiObject):
    """Who a key acts as: here each key stands for itself."""

    name: str
    created_at: int
    role: Literal["owner", "member"]


class Owner(BaseModel):
    """The owner of a key, in OpenAI's form."""

    type: Literal["service_account"] = "service_account"
    service_account: ServiceAccount


class ProjectKeyObject(ApiObject):
    """A key of a named project, in the form of OpenAI's admin API with more fields.

    `owner_project_access` tells whether the key works now.
    """

    object: Literal["organization.project.api_key"] = "organization.project.api_key"
    name: str
    redacted_value: str
    scopes: list[str]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    owner: Owner
    owner_project_access: Literal["active", "inactive"]

    @classmethod
    def of(cls, row: ApiKey, *, active_project: bool) -> "ProjectKeyObject":
        """Show one database row."""
        return cls(**_shown(row), **_owned(row, active_project=active_project))


class CreatedProjectKey(ProjectKeyObject):
    """A new key of a named project with its secret, which is shown this once."""

    value: str

    @classmethod
    def with_secret(cls, row: ApiKey, secret: str) -> "CreatedProjectKey":
        """Show a row that was just created."""
        return cls(**_shown(row), **_owned(row, active_project=True), value=secret)


def _owned(row: ApiKey, *, active_project: bool) -> dict[str, Any]:
    account = ServiceAccount(
        id=row.id,
        name=row.name,
        created_at=row.created_at,
        role="owner" if ADMIN in row.scopes else "member",
    )
    works = active_project and row.revoked_at is None and not expired(row)
    return {
        "owner": Owner(service_account=account),
        "owner_project_access": "active" if works else "inactive",
    }


def expired(row: ApiKey) -> bool:
    """Say whether the key's time is over."""
    return row.expires_at is not None and row.expires_at <= now()


def _shown(row: ApiKey) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "redacted_value": f"{row.prefix}…",
        "scopes": row.scopes,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
        "last_used_at": row.last_used_at,
    }

"""API keys of a project."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from api.schemas.common import ApiObject, RequestBody
from core.clock import now
from core.keys import ALL, SCOPES
from core.models import ApiKey

#: The last second of the year 9999.
LATEST = 253_402_300_799


class CreateKey(RequestBody):
    """The body that creates a key."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[str], Field(min_length=1, default_factory=lambda: [ALL])]
    expires_at: Annotated[int, Field(le=LATEST)] | None = None

    @field_validator("scopes")
    @classmethod
    def _known(cls, scopes: list[str]) -> list[str]:
        for scope in scopes:
            if scope not in SCOPES:
                raise ValueError(f"the scope {scope!r} is not one of {list(SCOPES)}")
        return sorted(set(scopes))

    @field_validator("expires_at")
    @classmethod
    def _in_the_future(cls, expires_at: int | None) -> int | None:
        if expires_at is not None and expires_at <= now():
            raise ValueError("it must be a unix time in the future, in seconds")
        return expires_at


class KeyObject(ApiObject):
    """A key without its secret; `redacted_value` is its beginning."""

    object: Literal["organization.api_key"] = "organization.api_key"
    name: str
    redacted_value: str
    scopes: list[str]
    created_at: int
    expires_at: int | None
    revoked_at: int | None

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


def _shown(row: ApiKey) -> dict[str, object]:
    return {
        "id": row.id,
        "name": row.name,
        "redacted_value": f"{row.prefix}…",
        "scopes": row.scopes,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
    }

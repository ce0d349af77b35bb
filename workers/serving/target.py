"""Which weights a request is for, as the API says in its `x-rft-model` header."""

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from core.errors import InvalidRequest

HEADER = "x-rft-model"


class Target(BaseModel):
    """A base model, or weights trained from it that lie committed under `artifact`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str
    artifact: str | None = None
    kind: Literal["adapter", "full"] | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> "Target":
        if (self.artifact is None) != (self.kind is None):
            raise ValueError("artifact and kind belong together")
        return self

    def fingerprint(self, engine: str) -> str:
        """Return a name for what gives the answers: these weights in this version of the engine."""
        what = f"{engine} {self.base} {self.artifact}"
        return f"fp_{hashlib.sha256(what.encode()).hexdigest()[:10]}"


def parse_target(header: str | None) -> Target:
    """Read the header.

    Raises:
        InvalidRequest: it is missing or malformed.
    """
    try:
        return Target.model_validate_json(header or "")
    except ValidationError as error:
        raise InvalidRequest(
            f"The header {HEADER} must hold a JSON object with base, artifact and kind."
        ) from error

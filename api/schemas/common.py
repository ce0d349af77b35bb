"""Shapes that several endpoints share."""

from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict


class ApiObject(BaseModel):
    """An object of the API with an id."""

    id: str


Item = TypeVar("Item", bound=ApiObject)


class RequestBody(BaseModel):
    """A request body: unknown fields are refused (see `api.bodies`), types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EmptyBody(RequestBody):
    """The body of an action that takes no fields."""


class ListPage(BaseModel, Generic[Item]):
    """A page of objects."""

    object: Literal["list"] = "list"
    data: Sequence[Item]
    has_more: bool


class ListPageWithIds(ListPage[Item], Generic[Item]):
    """A page that also names its first and last object; both null when it is empty."""

    first_id: str | None
    last_id: str | None

    @classmethod
    def of(cls, items: Sequence[Item], *, has_more: bool) -> "ListPageWithIds[Item]":
        """Make a page of `items`."""
        return cls(
            data=items,
            has_more=has_more,
            first_id=items[0].id if items else None,
            last_id=items[-1].id if items else None,
        )


class Deleted(BaseModel):
    """The answer to a deletion."""

    id: str
    object: str
    deleted: Literal[True] = True

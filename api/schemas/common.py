"""Shapes that several endpoints share."""

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict


class ApiObject(BaseModel):
    """An object of the API with an id."""

    id: str


Item = TypeVar("Item", bound=ApiObject)


class RequestBody(BaseModel):
    """A request body: unknown fields are refused (see `api.bodies`), types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


def list_or_text(value: Any) -> str:
    """Return the tag of the union's member that a value is meant as.

    What is wrong with a list is then said of the list, not that it is no text either.
    """
    return "list" if isinstance(value, list) else "text"


def object_or_text(value: Any) -> str:
    """As `list_or_text`, for a union of an object and a text."""
    return "object" if isinstance(value, dict | BaseModel) else "text"


class EmptyBody(RequestBody):
    """The body of an action that takes no fields."""


class ListPage(BaseModel, Generic[Item]):
    """A page of objects."""

    object: Literal["list"] = "list"
    data: Sequence[Item]
    has_more: bool


class ListPageWithIds(ListPage[Item], Generic[Item]):
    """A page that also names its first and last object; both are empty texts when it is empty:
    OpenAI's schemas know no null for files and evals.
    """

    first_id: str
    last_id: str

    @classmethod
    def of(cls, items: Sequence[Item], *, has_more: bool) -> "ListPageWithIds[Item]":
        """Make a page of `items`."""
        first, last = (items[0].id, items[-1].id) if items else ("", "")
        return cls(data=items, has_more=has_more, first_id=first, last_id=last)


class Deleted(BaseModel):
    """The answer to a deletion."""

    id: str
    object: str
    deleted: Literal[True] = True

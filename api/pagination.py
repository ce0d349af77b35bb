"""Cursor pages in OpenAI's form: `after` is the id of the last element seen, exclusive."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BeforeValidator
from sqlalchemy import ColumnElement, Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

#: The most rows in one page of jobs, events or checkpoints; a larger `limit` is lowered to it.
MAX_LIMIT = 1000
#: Characters after which a page of heavy rows ends, however many were asked for.
MAX_PAGE_CHARS = 8 * 1024 * 1024
#: Heavy rows that are fetched at a time.
_FETCHED = 4

#: An empty one, as scripts send for their first page, counts as absent.
After = Annotated[str | None, Query(), BeforeValidator(lambda text: text or None)]
Limit = Annotated[int | None, Query()]

Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows of one page, in order, and whether more follow."""

    rows: Sequence[Row]
    has_more: bool


def paginate(
    session: Session,
    query: Select[Row],
    *,
    order: Sequence[InstrumentedAttribute[Any]],
    cursor: Select[Row] | None,
    limit: int,
    descending: bool = True,
    columns: Sequence[ColumnElement[Any]] | None = None,
    weigh: Callable[[Any], int] | None = None,
) -> Page[Any]:
    """Return one page of `query`, ordered by the columns `order`.

    The columns of `order` must be unique together and never change, so that rows added or deleted
    between two pages neither repeat nor hide others. `cursor` selects the row that the page
    before ended with; one that finds nothing gives an empty last page, because starting over
    would make a client that follows pages loop for ever. With `columns`, the page holds tuples of
    these instead of whole rows. `weigh` says how many characters a row has, where some have many:
    the page ends with the row that reaches `MAX_PAGE_CHARS`.
    """
    if cursor is not None:
        last = session.scalar(cursor)
        if last is None:
            return Page(rows=[], has_more=False)
        here = tuple_(*order)
        there = tuple_(*(getattr(last, column.key) for column in order))
        query = query.where(here < there if descending else here > there)
    by = [column.desc() if descending else column.asc() for column in order]
    query = query.order_by(*by).limit(limit + 1)
    if weigh is not None:
        return _light(session, query, limit, weigh)
    rows: Sequence[Any] = (
        session.scalars(query).all()
        if columns is None
        else session.connection().execute(query.with_only_columns(*columns)).all()
    )
    return Page(rows=rows[:limit], has_more=len(rows) > limit)


def _light(
    session: Session, query: Select[Row], limit: int, weigh: Callable[[Row], int]
) -> Page[Row]:
    rows: list[Row] = []
    chars = 0
    found = session.scalars(query, execution_options={"yield_per": _FETCHED})
    with closing(found):
        for row in found:
            if len(rows) == limit or chars >= MAX_PAGE_CHARS:
                return Page(rows, has_more=True)
            rows.append(row)
            chars += weigh(row)
    return Page(rows, has_more=False)


def clamp(limit: int | None, *, default: int, maximum: int = MAX_LIMIT) -> int:
    """Return a page size the server serves: OpenAI's clients may send 0 and expect an answer."""
    return default if limit is None else min(max(limit, 1), maximum)

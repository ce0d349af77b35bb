"""Jobs and events as bytes, straight from their rows.

A job is read far more often than it changes, so the same row is turned into bytes once and then
found again by its content. Nothing has to be told when a row changes: then it is another row.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from fastapi import Response
from sqlalchemy import JSON, Text, inspect
from sqlalchemy import cast as sql_cast
from sqlalchemy.sql import ColumnElement

from api.schemas.common import ApiObject
from api.schemas.jobs import EventObject, JobObject
from core.models import Event, Job
from core.models.base import Base

#: Rows that are remembered, and the most characters of JSON in one: some graders hold programs.
REMEMBERED, MAX_CHARS = 1024, 16_384

#: Columns that no answer shows; some of them change every few seconds, others are large.
_HIDDEN_OF_JOBS = frozenset(
    {
        *("attempts", "failed_attempts", "fence", "lease_expires_at", "lease_owner", "priority"),
        *("gpu_seconds", "running_since", "started_at", "phase", "step", "total_steps"),
        *("kind", "plan", "project_id", "report", "seq", "warm_start_file"),
    }
)
_HIDDEN_OF_EVENTS = frozenset({"seq", "job_id", "phase", "step"})

Table = TypeVar("Table", bound=Base)
Row = tuple[Any, ...]


class JsonBytes(Response):
    """An answer that is JSON already."""

    media_type = "application/json"


class Renderer:
    """Turns rows of one table into the bytes of their API objects.

    `columns` is what to select; JSON comes as text, for most rows are never parsed. `show` makes
    the object from a row with the table's attributes, of which only those of `columns` exist.
    """

    def __init__(
        self, table: type[Table], show: Callable[[Table], ApiObject], *, hidden: frozenset[str]
    ) -> None:
        shown = [each for each in inspect(table).column_attrs if each.key not in hidden]
        self._names = [each.key for each in shown]
        self._json = {each.key for each in shown if isinstance(each.columns[0].type, JSON)}
        # The table's own columns: attributes of the class would bring the whole ORM with them.
        self.columns: list[ColumnElement[Any]] = [
            sql_cast(column, Text).label(name) if name in self._json else column
            for name, column in ((each.key, each.columns[0]) for each in shown)
        ]
        self._long = [place for place, name in enumerate(self._names) if name in self._json]
        self._show = show
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._render)

    def __call__(self, row: Row) -> bytes:
        """Return the object of one selected row as JSON."""
        row = tuple(row)
        for place in self._long:
            if row[place] is not None and len(row[place]) > MAX_CHARS:
                return self._render(row)
        return self._remembered(row)

    def _render(self, row: Row) -> bytes:
        values = dict(zip(self._names, row, strict=True))
        for name in self._json:
            if values[name] is not None:
                values[name] = json.loads(values[name])
        # Not a row of the table: an attribute that was not selected must fail, not read as null.
        shown = self._show(cast(Any, SimpleNamespace(**values)))
        return shown.model_dump_json().encode()


def job_renderer(organization_id: str) -> Renderer:
    """Return the renderer of jobs."""
    return Renderer(
        Job, partial(JobObject.of, organization_id=organization_id), hidden=_HIDDEN_OF_JOBS
    )


def event_renderer() -> Renderer:
    """Return the renderer of events."""
    return Renderer(Event, EventObject.of, hidden=_HIDDEN_OF_EVENTS)


def list_page(items: Sequence[bytes], *, has_more: bool) -> bytes:
    """Return the bytes of `ListPage`."""
    more = b"true" if has_more else b"false"
    return b'{"object":"list","data":[' + b",".join(items) + b'],"has_more":' + more + b"}"

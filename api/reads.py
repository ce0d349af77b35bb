"""The reads that clients repeat all day: who a key belongs to, a job, jobs, a job's events.

They take the short way: one query for all who ask at the same time (`api.batching`), and rows to
bytes without objects in between (`api.rendering`).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, Select, bindparam, literal, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import InstrumentedAttribute, Session

from api.batching import Batcher
from api.pagination import Page, clamp
from api.rendering import Renderer, event_renderer, job_renderer, list_page
from api.services import jobs
from api.tenancy import Tenant
from core import keys
from core.db import make_reading_engine
from core.models import TRAINING, Event, Job

#: Queries that run at the same time.
THREADS = 8

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class JobsPage(NamedTuple):
    """Which page of jobs; `metadata` as in `jobs.list_jobs`, its pairs sorted."""

    key_hash: str
    after: str | None
    limit: int | None
    metadata: tuple[tuple[str, str], ...] | None


class EventsPage(NamedTuple):
    """Which page of a job's events."""

    key_hash: str
    job_id: str
    after: str | None
    limit: int | None


#: The asking key, and what it found in its project.
Answer = tuple[keys.KnownKey | None, bytes | None]
NOBODY: Answer = (None, None)


#: Whether the project has the job.
_OWNS = select(literal(1)).where(
    Job.__table__.c.id == bindparam("job_id"),
    Job.__table__.c.project_id == bindparam("project_id"),
    Job.__table__.c.kind == TRAINING,
)


class Reads:
    """The short way; answers are JSON as bytes."""

    def __init__(self, database_url: str, *, organization_id: str) -> None:
        self._engine = make_reading_engine(database_url)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="reads")
        self._show_job = job_renderer(organization_id)
        self._show_event = event_renderer()
        # By id alone: SQLite would read all of a project's jobs rather than use the primary key.
        self._jobs_by_id = select(Job.project_id, Job.id, *self._show_job.columns).where(
            Job.id.in_(bindparam("ids", expanding=True)), Job.kind == TRAINING
        )
        # First pages, which everybody polls, are built once; `jobs` builds the others.
        self._first_jobs = _first_page(
            select(Job).where(Job.project_id == bindparam("project_id"), Job.kind == TRAINING),
            jobs.JOB_ORDER,
            self._show_job.columns,
        )
        self._first_events = _first_page(
            select(Event).where(Event.job_id == bindparam("job_id"), _OWNS.exists()),
            jobs.EVENT_ORDER,
            self._show_event.columns,
        )
        self._keys = Batcher(_again(self._find_keys), self._pool)
        self._jobs = Batcher(_again(self._find_jobs), self._pool)
        self._job_pages = Batcher(_again(self._find_job_page), self._pool)
        self._event_pages = Batcher(_again(self._find_event_page), self._pool)

    async def key(self, key_hash: str) -> keys.KnownKey | None:
        """Return what is known of a key; it may be revoked or expired."""
        return await self._keys.get(None, key_hash)

    async def job(self, key_hash: str, job_id: str) -> Answer:
        """Return a job of the key's project."""
        if "\0" in job_id:
            # Postgres would refuse the whole query, and with it all who share it.
            return await self.key(key_hash), None
        return await self._jobs.get(None, (key_hash, job_id)) or NOBODY

    async def jobs(
        self,
        key_hash: str,
        after: str | None,
        limit: int | None,
        metadata: tuple[tuple[str, str], ...] | None,
    ) -> Answer:
        """Return a page of the jobs of the key's project, newest first."""
        page = JobsPage(key_hash, after, limit, metadata)
        return await self._job_pages.get(page, None) or NOBODY

    async def events(
        self, key_hash: str, job_id: str, after: str | None, limit: int | None
    ) -> Answer:
        """Return a page of the events of a job of the key's project, newest first."""
        page = EventsPage(key_hash, job_id, after, limit)
        return await self._event_pages.get(page, None) or NOBODY

    def close(self) -> None:
        """End the threads and close their connections."""
        self._pool.shutdown()
        self._engine.dispose()

    def _find_keys(self, _: None, hashes: Sequence[str]) -> Mapping[str, keys.KnownKey]:
        with self._engine.connect() as connection:
            return keys.look_up(connection, hashes)

    def _find_jobs(
        self, _: None, wanted: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Answer]:
        hashes = {key_hash for key_hash, _ in wanted}
        ids = {job_id for _, job_id in wanted}
        with self._engine.connect() as connection:
            known = keys.look_up(connection, sorted(hashes))
            rows = connection.execute(self._jobs_by_id, {"ids": sorted(ids)}).all()
        found = {(row[0], row[1]): row[2:] for row in rows}
        answers: dict[tuple[str, str], Answer] = {}
        for key_hash, job_id in wanted:
            if (key := known.get(key_hash)) is not None:
                row = found.get((key.project_id, job_id))
                answers[key_hash, job_id] = (key, None if row is None else self._show_job(row))
        return answers

    def _find_job_page(self, page: JobsPage, _: Sequence[None]) -> Mapping[None, Answer]:
        with self._engine.connect() as connection:
            key = keys.look_up(connection, [page.key_hash]).get(page.key_hash)
            if key is None:
                return {}
            if page.after is None and page.metadata is None:
                values = {"project_id": key.project_id}
                found = _first(connection, self._first_jobs, values, page.limit)
                return {None: (key, _bytes(found, self._show_job))}
            rows: Page[Any] = jobs.list_jobs(
                Tenant(session=Session(connection), project_id=key.project_id),
                after=page.after,
                limit=page.limit,
                metadata=None if page.metadata is None else dict(page.metadata),
                columns=self._show_job.columns,
            )
        return {None: (key, _bytes(rows, self._show_job))}

    def _find_event_page(self, page: EventsPage, _: Sequence[None]) -> Mapping[None, Answer]:
        with self._engine.connect() as connection:
            key = keys.look_up(connection, [page.key_hash]).get(page.key_hash)
            if key is None:
                return {}
            asked = {"job_id": page.job_id, "project_id": key.project_id}
            if page.after is None:
                found = _first(connection, self._first_events, asked, page.limit)
                # Events show that the project has the job; without any, it is looked for below.
                if found.rows:
                    return {None: (key, _bytes(found, self._show_event))}
            if not connection.execute(_OWNS, asked).first():
                return {None: (key, None)}
            rows: Page[Any] = jobs.list_events(
                Tenant(session=Session(connection), project_id=key.project_id),
                page.job_id,
                after=page.after,
                limit=page.limit,
                columns=self._show_event.columns,
            )
        return {None: (key, _bytes(rows, self._show_event))}


def _first_page(
    query: Select[Any], order: Sequence[InstrumentedAttribute[Any]], columns: Sequence[Any]
) -> Select[Any]:
    newest_first = [column.desc() for column in order]
    query = query.with_only_columns(*columns).order_by(*newest_first)
    return query.limit(bindparam("limit"))


def _first(
    connection: Connection, query: Select[Any], values: dict[str, str], limit: int | None
) -> Page[Any]:
    size = clamp(limit, default=jobs.DEFAULT_LIMIT)
    rows = connection.execute(query, {**values, "limit": size + 1}).all()
    return Page(rows=rows[:size], has_more=len(rows) > size)


def _bytes(page: Page[Any], show: Renderer) -> bytes:
    return list_page([show(row) for row in page.rows], has_more=page.has_more)


def _again(find: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """Ask once more when the connection turns out to be dead, as after a restart of Postgres.

    The pool has thrown away all its old connections by then.
    """

    def find_again(*args: Asked.args, **kwargs: Asked.kwargs) -> Found:
        try:
            return find(*args, **kwargs)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            return find(*args, **kwargs)

    return find_again

"""Engines and sessions for SQLite and Postgres, with the same behaviour in both."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.orm import Session, sessionmaker

#: Seconds a writer waits for another writer's transaction on SQLite.
BUSY_TIMEOUT_S = 30.0

# `hide_parameters`: a failed statement is logged, and its values may be secrets.
# Postgres refuses NaN inside JSON and SQLite stores it; refuse it in both.
_dump_json = partial(json.dumps, allow_nan=False)


def parse_url(url: str) -> URL:
    """Return the URL with the driver this service ships (psycopg for Postgres)."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def make_engine(url: str) -> Engine:
    """Return an engine for a `sqlite:///…` or `postgresql://…` URL."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite_engine(parsed)
    return create_engine(
        parsed, pool_pre_ping=True, json_serializer=_dump_json, hide_parameters=True
    )


def make_reading_engine(url: str) -> Engine:
    """Return an engine for single statements that read, each with one round trip to the server.

    There is no transaction to begin and end, and no ping before: the first statement on a
    connection that the server has closed raises a `DBAPIError` with `connection_invalidated`.
    """
    parsed = parse_url(url)
    options: dict[str, Any] = {
        "isolation_level": "AUTOCOMMIT",
        "skip_autocommit_rollback": True,
    }
    if parsed.get_backend_name() == "sqlite":
        return _sqlite_engine(parsed, **options)
    return create_engine(parsed, hide_parameters=True, **options)


def session_factory(engine: Engine) -> sessionmaker[Session]:
    """Return the session factory; rows stay readable after commit.

    Use `with factory.begin() as session:` for a transaction that commits at the end.
    """
    return sessionmaker(engine, expire_on_commit=False)


def _sqlite_engine(url: URL, **options: Any) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    # With this isolation level sqlite3 opens `BEGIN IMMEDIATE` before the first writing statement
    # and nothing before a read. So a transaction that reads and then writes never holds a snapshot
    # that it would have to upgrade (SQLITE_BUSY without waiting), a slow reader blocks nobody, and
    # reads see committed data as under Postgres' READ COMMITTED.
    engine = create_engine(
        url,
        connect_args={"isolation_level": "IMMEDIATE", "timeout": BUSY_TIMEOUT_S},
        json_serializer=_dump_json,
        hide_parameters=True,
        **options,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")

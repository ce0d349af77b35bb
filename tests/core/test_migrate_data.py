"""Rows of the previous release are there after the migration, and the models read them."""

from typing import Any

import pytest
from sqlalchemy import MetaData, Table, insert, inspect, select
from sqlalchemy.engine import Connection
from sqlalchemy.types import JSON, Boolean, Float, Integer, LargeBinary

from core.db import make_engine, session_factory
from core.migrate import upgrade
from core.models import Base

#: The last migration of the previous release.
PREVIOUS = "0002"

#: Columns that a later migration leaves out on purpose, by table.
DROPPED: dict[str, set[str]] = {}


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    """A database without tables; the test runs on both kinds."""
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


def fill(connection: Connection) -> dict[str, dict[str, Any]]:
    """Put one row into every table there is, parents first, and return the rows."""
    tables = MetaData()
    tables.reflect(connection)
    rows: dict[str, dict[str, Any]] = {}
    for table in tables.sorted_tables:
        if table.name != "alembic_version":
            rows[table.name] = _row(table, rows)
            connection.execute(insert(table).values(rows[table.name]))
    return rows


def _row(table: Table, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in table.columns:
        for key in column.foreign_keys:
            row[column.name] = rows[key.column.table.name][key.column.name]
        row.setdefault(column.name, _value(table.name, column.name, column.type))
    return row


def _value(table: str, column: str, kind: Any) -> Any:
    if isinstance(kind, JSON):
        return {"of": column}
    if isinstance(kind, Boolean):
        return True
    if isinstance(kind, LargeBinary):
        return column.encode()
    if isinstance(kind, Integer | Float):
        return 7
    return f"{table}-{column}"[: getattr(kind, "length", None) or 16]


def test_rows_of_the_previous_release_survive(empty_url: str) -> None:
    upgrade(empty_url, PREVIOUS)
    engine = make_engine(empty_url)
    with engine.begin() as connection:
        before = fill(connection)
    assert len(before) >= 9
    upgrade(empty_url)
    after = MetaData()
    with engine.connect() as connection:
        after.reflect(connection)
        for name, row in before.items():
            columns = [column for column in after.tables[name].columns if column.name in row]
            found = connection.execute(select(*columns)).mappings().all()
            kept = {column.name: row[column.name] for column in columns}
            assert [dict(each) for each in found] == [kept], name
            assert set(row) - set(kept) <= DROPPED.get(name, set()), name
    engine.dispose()


def test_the_models_read_rows_of_the_previous_release(empty_url: str) -> None:
    upgrade(empty_url, PREVIOUS)
    engine = make_engine(empty_url)
    with engine.begin() as connection:
        names = set(fill(connection))
    upgrade(empty_url)
    with session_factory(engine)() as session:
        for mapper in Base.registry.mappers:
            rows = session.scalars(select(mapper.class_)).all()
            table = inspect(mapper.class_).local_table.name
            assert len(rows) == (1 if table in names else 0), table
    engine.dispose()

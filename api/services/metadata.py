"""The `metadata` filter of the job list, on both kinds of database."""

from sqlalchemy import ColumnElement, func, literal, select
from sqlalchemy.orm import Session

from core.models import Job


def carries(session: Session, key: str, value: str) -> ColumnElement[bool]:
    """Return the condition that a job's metadata has this pair.

    The pairs are compared as rows: SQLite has no way to quote some keys inside a JSON path.
    """
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    unfold = func.json_each if on_sqlite else func.json_each_text
    pairs = unfold(Job.meta).table_valued("key", "value")
    found = select(literal(1)).select_from(pairs).correlate(Job)
    return found.where(pairs.c.key == key, pairs.c.value == value).exists()

"""What the validator said about files, kept by their content: one report serves every upload of it.

A report belongs to bytes, not to a project. It is only ever looked up with the hash of a file that
the asker has, and tells nothing that those bytes do not.
"""

from collections.abc import Mapping
from typing import Any

from rft.dataset import VERSION, Report, kind_named
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.clock import now
from core.models import FileReport


def keep(session: Session, sha256: str, kind: str, report: Report | Mapping[str, Any]) -> None:
    """Keep a report, or what its `to_dict` gave, in the place of an older one.

    `kind` is the one that was validated; for `auto` it is the kind that the report names. Two
    writers at once do not disturb each other.
    """
    plain = report.to_dict() if isinstance(report, Report) else dict(report)
    kind = str(plain["kind"]) if kind == "auto" else kind_named(kind)
    values = {"version": plain["version"], "report": plain, "created_at": now()}
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    statement = insert(FileReport).values(sha256=sha256, kind=kind, **values)
    key = [FileReport.sha256, FileReport.kind]
    session.execute(statement.on_conflict_do_update(index_elements=key, set_=values))


def find(session: Session, sha256: str, kind: str) -> Report | None:
    """Return this validator's report on bytes with this hash, read as rows of `kind`.

    `auto` is the kind that the rows look like.
    """
    query = select(FileReport).where(FileReport.sha256 == sha256, FileReport.version == VERSION)
    kept = {row.kind: row.report for row in session.scalars(query)}
    if kind == "auto":
        kind = next((report["looks_like"] for report in kept.values()), kind)
    else:
        kind = kind_named(kind)
    return Report.from_dict(kept[kind]) if kind in kept else None

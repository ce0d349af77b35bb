"""Write down what an inspection found, or that a worker has to see to it."""

from typing import Any

from rft.dataset import Report
from sqlalchemy import update
from sqlalchemy.orm import Session

from core.clock import now
from core.file_reports import keep
from core.inspection.refusal import refusal_of
from core.models import File

#: How long an API process may take to inspect a file, in seconds, before a worker does it.
OVERDUE_S = 15 * 60


def settle(session: Session, file_id: str, sha256: str, report: Report) -> None:
    """Keep the report, and give a file that is still `uploaded` its last status."""
    keep(session, sha256, report.kind, report)
    refusal = refusal_of(report)
    _change(session, file_id, status="error" if refusal else "processed", status_details=refusal)


def give_up(session: Session, file_id: str, reason: str) -> None:
    """End the wait of a file that is still `uploaded` and cannot be inspected."""
    _change(session, file_id, status="error", status_details=reason)


def hand_over(session: Session, file_id: str, *, after_s: int = 0) -> None:
    """Have a worker inspect a file that is still `uploaded`, in so many seconds."""
    _change(session, file_id, inspect_after=now() + after_s)


def _change(session: Session, file_id: str, **values: Any) -> None:
    waits = update(File).where(File.id == file_id, File.status == "uploaded")
    session.execute(waits.values(**values))

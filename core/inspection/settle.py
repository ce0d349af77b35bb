"""Write down what an inspection found, or that a worker has to see to it."""

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
    refusal = refusal_of(report)
    keep(session, sha256, report.kind, report)
    session.execute(
        update(File)
        .where(File.id == file_id, File.status == "uploaded")
        .values(status="error" if refusal else "processed", status_details=refusal)
    )


def hand_over(session: Session, file_id: str, *, after_s: int = 0) -> None:
    """Have a worker inspect a file that is still `uploaded`, in so many seconds."""
    session.execute(
        update(File)
        .where(File.id == file_id, File.status == "uploaded")
        .values(inspect_after=now() + after_s)
    )

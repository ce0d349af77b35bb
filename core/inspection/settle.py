"""Write down what an inspection found: the report by content, the file's status."""

from rft.dataset import Report
from sqlalchemy import update
from sqlalchemy.orm import Session

from core.file_reports import keep
from core.inspection.refusal import refusal_of
from core.models import File


def settle(session: Session, file_id: str, sha256: str, report: Report) -> None:
    """Keep the report, and give a file that is still `uploaded` its last status."""
    refusal = refusal_of(report)
    keep(session, sha256, report.kind, report)
    session.execute(
        update(File)
        .where(File.id == file_id, File.status == "uploaded")
        .values(status="error" if refusal else "processed", status_details=refusal)
    )

"""/v1/files/{file_id}/validation"""

from typing import Annotated

from fastapi import APIRouter, Query

from api.parts import PartsDep
from api.schemas.validation import FileValidation
from api.services.validation import report_on
from api.tenant import TransactionsDep

router = APIRouter(prefix="/v1/files")


@router.get("/{file_id}/validation")
def validate_file(
    file_id: str,
    transactions: TransactionsDep,
    parts: PartsDep,
    kind: Annotated[
        str,
        Query(
            description="What the rows are for: reinforcement, supervised, warm_start or "
            "preference; auto takes what they look like."
        ),
    ] = "auto",
) -> FileValidation:
    """Show what the validator says about a training file."""
    report = report_on(transactions, parts.store, file_id, kind)
    return FileValidation.of(file_id, report)

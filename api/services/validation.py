"""The report on a stored file: the one that is kept, or one made now."""

from threading import BoundedSemaphore

from rft.dataset import Report, kind_named

from api.tenancy import Transactions
from api.tenant import find_file
from core import file_reports
from core.errors import InvalidRequest, RateLimited
from core.inspection import inspect_stored
from core.models import File
from core.store import ObjectStore

#: How many files are read at once for their report, and when to ask again if that many are.
PLACES, RETRY_AFTER_S = 2, 5.0

_places = BoundedSemaphore(PLACES)


def report_on(transactions: Transactions, store: ObjectStore, file_id: str, kind: str) -> Report:
    """Return the report on a file, reading it only when none is kept.

    Raises:
        NoSuchFile: the project has no such file.
        InvalidRequest: the kind is not known, or the file is not for training.
        RateLimited: too many files are being read.
        StorageError: the object store does not answer.
        InspectionFailed: the process that reads the file died.
    """
    try:
        kind = kind if kind == "auto" else kind_named(kind)
    except ValueError as error:
        raise InvalidRequest(str(error), param="kind", code="invalid_value") from error
    with transactions.begin() as tenant:
        file = find_file(tenant, file_id)
        if file.purpose != "fine-tune":
            raise InvalidRequest(
                f"The file {file_id} is for '{file.purpose}'; only files for 'fine-tune' are "
                "validated.",
                param="file_id",
            )
        kept = file_reports.find(tenant.session, file.sha256, kind)
    if kept is not None:
        return kept
    report = _read(store, file, kind)
    with transactions.begin() as tenant:
        file_reports.keep(tenant.session, file.sha256, kind, report)
    return report


def _read(store: ObjectStore, file: File, kind: str) -> Report:
    if not _places.acquire(blocking=False):
        raise RateLimited(
            "Other files are being validated at the moment; ask again in a few seconds.",
            retry_after_s=RETRY_AFTER_S,
        )
    try:
        return inspect_stored(store.iter(file.object_key), file.bytes, kind=kind)
    finally:
        _places.release()

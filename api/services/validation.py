"""The report on a stored file: the one that is kept, or one made now."""

import json
import os
import subprocess
import sys
from threading import BoundedSemaphore

from rft.dataset import Report, Validator, kind_named

from api.tenant import Transactions, find_file
from core import file_reports
from core.errors import InvalidRequest, RateLimited, RftError
from core.models import File
from core.process.environment import clean_environment
from core.store import ObjectStore

#: Up to here a file is read in the request's thread, larger ones in a process, in bytes.
SMALL_BYTES = 4 * 1024 * 1024
#: How many files are read at once for their report, and when to ask again if that many are.
PLACES, RETRY_AFTER_S = 2, 5.0

_places = BoundedSemaphore(PLACES)


class ValidationFailed(RftError):
    """The process that reads a file for its report ended without one."""

    code = "validation_failed"


def report_on(transactions: Transactions, store: ObjectStore, file_id: str, kind: str) -> Report:
    """Return the report on a file, reading it only when none is kept.

    Raises:
        NoSuchFile: the project has no such file.
        InvalidRequest: the kind is not known, or the file is not for training.
        RateLimited: too many files are being read.
        StorageError: the object store does not answer.
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
        if file.bytes > SMALL_BYTES:
            return _read_apart(store, file, kind)
        validator = Validator(kind)
        for chunk in store.iter(file.object_key):
            validator.feed(chunk)
        return validator.close()
    finally:
        _places.release()


def _read_apart(store: ObjectStore, file: File, kind: str) -> Report:
    """Read a large file in a process of its own, so that other requests do not wait for it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "core.inspection.child", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(os.environ),
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin as sink:
            for chunk in store.iter(file.object_key):
                sink.write(chunk)
        return Report.from_dict(json.load(process.stdout))
    except (BrokenPipeError, json.JSONDecodeError) as error:
        raise ValidationFailed(
            f"The validation of {file.id} ended without a report; ask again, and look at the "
            "server's memory if that does not help."
        ) from error
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

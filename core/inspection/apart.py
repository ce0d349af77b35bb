"""Read a file's rows in a process of its own: neither the interpreter nor the memory is shared."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable

from rft.dataset import Report, Validator

from core.errors import InvalidRequest, RftError
from core.process.environment import clean_environment

#: Up to here a process would cost more than the inspection itself, in bytes.
SMALL_BYTES = 1024 * 1024
#: With this exit status a process says that the rows take too long.
TOO_SLOW = 3


class InspectionFailed(RftError):
    """The process that inspects a file ended without a report."""

    code = "inspection_failed"


class TooSlowToRead(InvalidRequest):
    """The rows are too many and too short to read them all."""

    code = "invalid_file_format"
    param = "file"

    def __init__(self) -> None:
        super().__init__(
            "The rows of the file take too long to read: it has too many, and very short ones;"
            " write fewer or longer ones, and upload it again."
        )


def inspect_stored(chunks: Iterable[bytes], size: int, *, kind: str = "auto") -> Report:
    """Return the report on a file of `size` bytes, read as rows of `kind`.

    Raises `InspectionFailed`, `TooSlowToRead`, and whatever reading the chunks raises.
    """
    inspect = inspect_here if size <= SMALL_BYTES else inspect_apart
    return inspect(chunks, kind=kind)


def inspect_here(chunks: Iterable[bytes], *, kind: str = "auto") -> Report:
    """Inspect a small file in this thread."""
    validator = Validator(kind)
    for chunk in chunks:
        validator.feed(chunk)
    return validator.close()


def inspect_apart(chunks: Iterable[bytes], *, kind: str = "auto") -> Report:
    """Inspect a file of any size in a process, which ends with this call however it ends.

    Raises `InspectionFailed`, `TooSlowToRead`, and whatever reading the chunks raises.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "core.inspection.child", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(os.environ),
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin as sink:
            for chunk in chunks:
                sink.write(chunk)
        return Report.from_dict(json.load(process.stdout))
    except (BrokenPipeError, json.JSONDecodeError) as error:
        if process.wait() == TOO_SLOW:
            raise TooSlowToRead from error
        raise InspectionFailed(
            "The process that inspects a file ended without a report; look at this machine's"
            " memory, and try again."
        ) from error
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

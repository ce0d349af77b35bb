"""The process that inspects a file: its report, and the files that it gives up."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from core.inspection import (
    InspectionFailed,
    TooSlowToRead,
    cannot_be_rows,
    inspect_stored,
)
from core.inspection.apart import SMALL_BYTES, TOO_SLOW, inspect_apart

ROW = b'{"messages": [{"role": "user", "content": "1+1?"}]}\n'


def test_a_report_does_not_depend_on_where_it_was_made() -> None:
    near, far = inspect_stored([ROW], SMALL_BYTES), inspect_stored([ROW], SMALL_BYTES + 1)
    assert near == far and near.ok
    assert inspect_apart([ROW], kind="preference").kind == "preference"


def test_what_reading_raises_passes_through() -> None:
    def broken() -> Iterator[bytes]:
        yield ROW
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        inspect_apart(broken())


def test_a_process_that_dies_or_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.Popen

    def instead(status: int) -> None:
        def start(_: object, **options: object) -> object:
            return started(["/bin/sh", "-c", f"exit {status}"], **options)  # type: ignore[call-overload]

        monkeypatch.setattr(subprocess, "Popen", start)

    instead(1)
    with pytest.raises(InspectionFailed):
        inspect_apart([ROW])
    instead(TOO_SLOW)
    with pytest.raises(TooSlowToRead):
        inspect_apart([ROW])


@pytest.mark.parametrize(("grace_s", "status"), [("0", TOO_SLOW), ("30", 0)])
def test_a_file_may_take_only_so_much_time(grace_s: str, status: int) -> None:
    program = (
        "from core.inspection import child;"
        f"child.GRACE_S, child.LEAST_PACE = {grace_s}, 10**12; child.main()"
    )
    command = [sys.executable, "-c", program, "auto"]
    assert subprocess.run(command, input=ROW, capture_output=True).returncode == status


def test_the_beginning_tells_what_cannot_be_rows() -> None:
    assert cannot_be_rows(b"question,answer\n") and cannot_be_rows(b"[1]\n")
    assert not cannot_be_rows(ROW)
    assert not cannot_be_rows(b"\xef\xbb\xbf\n" + ROW)
    assert not cannot_be_rows(b"\n" * 100_000)

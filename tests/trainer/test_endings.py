"""What the machine does to a job is told apart from bugs."""

import errno
import io
import json
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from trainer.__main__ import as_end, main
from trainer.channel import Channel
from trainer.errors import NoDisk, OutOfMemory

HERE = Path("/somewhere/job")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
    ],
)
def test_a_full_disk_is_named(error: Exception) -> None:
    end = as_end(error, HERE)
    assert isinstance(end, NoDisk)
    assert str(HERE) in end.message


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_used_up_memory_is_named(error: Exception) -> None:
    assert isinstance(as_end(error, HERE), OutOfMemory)


@pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), FileNotFoundError("spec.json")])
def test_a_bug_stays_a_bug(error: Exception) -> None:
    assert as_end(error, HERE) is None


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("odd"), AssertionError("odd")])
def test_a_bug_is_reported_and_raised(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> None:
        raise error

    monkeypatch.setattr("trainer.__main__.run", run)
    monkeypatch.setattr("sys.argv", ["trainer", str(HERE)])
    with pytest.raises(type(error)):
        main()
    said = json.loads(capsys.readouterr().out)
    assert (said["type"], said["reason"], said["message"]) == ("ended", "error", repr(error))


def test_a_report_is_one_line_of_strict_json() -> None:
    reports = io.StringIO()
    channel = Channel(reports, None)
    channel.report("warning", message="a\nb", path=HERE)
    assert json.loads(reports.getvalue()) == {
        "type": "warning",
        "message": "a\nb",
        "path": str(HERE),
    }
    with pytest.raises(ValueError, match="not JSON compliant"):
        channel.report("metrics", data={"loss": float("nan")})

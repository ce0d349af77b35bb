"""Supervision of children, on a stack whose servers are tiny programs."""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from core.errors import ConfigurationError
from core.process.child import ChildSpec
from core.stack import stack as module
from core.stack.stack import Stack, StackFailed
from tests.processes import is_running, running

NAMES = ("broker", "store", "worker")
SLEEP = "import time; print('working', flush=True); time.sleep(600)"

Tiny = Callable[..., None]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """Replace the real children by programs: `tiny(worker=code, broker=code)`."""
    monkeypatch.setattr(module, "require_models", lambda _settings: None)

    def replace(*, worker: str = SLEEP, broker: str = SLEEP, **worker_options: Any) -> None:
        def spec(name: str, code: str, **options: Any) -> ChildSpec:
            return ChildSpec(name=name, command=(sys.executable, "-c", code), **options)

        monkeypatch.setattr(module.servers, "broker_spec", lambda *_: spec("broker", broker))
        monkeypatch.setattr(module.servers, "store_spec", lambda *_: spec("store", SLEEP))
        monkeypatch.setattr(
            module.programs,
            "program_specs",
            lambda *_args, **_options: [spec("worker", worker, **worker_options)],
        )

    replace()
    return replace


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("tiny")
def test_stop_leaves_nothing_running(tmp_path: Path) -> None:
    with Stack.start(tmp_path) as stack:
        wait_until(lambda: all(map(stack.pids, NAMES)))
        pids = [pid for name in NAMES for pid in stack.pids(name)]
        assert len(pids) == 3
    assert not running(pids)


@pytest.mark.usefixtures("tiny")
def test_a_dead_child_is_named_with_its_log_and_started_again(tmp_path: Path) -> None:
    lines: list[str] = []
    with Stack.start(tmp_path, report=lines.append) as stack:
        wait_until(lambda: bool(stack.pids("worker")))
        first = stack.pids("worker")[0]
        wait_until(lambda: "working" in (tmp_path / "logs" / "worker.log").read_text())
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: stack.pids("worker") not in ([], [first]))
    told = next(line for line in lines if "SIGKILL" in line)
    assert told.startswith("worker was killed by SIGKILL; the end of")
    assert "worker.log:\nworking" in told


def test_a_child_that_keeps_dying_stops_the_stack(tiny: Tiny, tmp_path: Path) -> None:
    tiny(worker="print('no such table', flush=True); raise SystemExit(5)")
    with pytest.raises(StackFailed) as failure, Stack.start(tmp_path) as stack:
        wait_until(lambda: bool(stack.pids("broker")))
        broker = stack.pids("broker")[0]
        stack.wait()
    assert "worker ended with exit code 5" in failure.value.message
    assert "no such table" in failure.value.message
    assert f"It ended {module.RESTARTS + 1} times; the stack stops." in failure.value.message
    assert not is_running(broker)


def test_a_failure_is_told_although_the_caller_saw_another_error(
    tiny: Tiny, tmp_path: Path
) -> None:
    tiny(worker="raise SystemExit(5)")
    with pytest.raises(StackFailed, match="exit code 5"), Stack.start(tmp_path) as stack:
        wait_until(lambda: stack.failure is not None)
        raise ConnectionError("the API is gone")


def test_a_child_that_cannot_start_is_named_and_nothing_stays(tiny: Tiny, tmp_path: Path) -> None:
    tiny(worker="print('bad setting'); raise SystemExit(2)", is_ready=lambda: False)
    with pytest.raises(StackFailed, match=r"worker ended with exit code 2(.|\n)*bad setting"):
        Stack.start(tmp_path)
    tiny()
    with Stack.start(tmp_path):
        pass


def test_a_child_that_does_not_answer_is_named(tiny: Tiny, tmp_path: Path) -> None:
    tiny(is_ready=lambda: False, ready_s=0.5)
    with pytest.raises(StackFailed, match="worker does not answer"):
        Stack.start(tmp_path)


def test_stores_outlive_those_that_use_them(tiny: Tiny, tmp_path: Path) -> None:
    """A worker that needs a moment to end still finds the broker."""
    marker = tmp_path / "broker.pid"
    broker = f"import os, pathlib; pathlib.Path({str(marker)!r}).write_text(str(os.getpid())); "
    worker = (
        "import os, pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(0.5)\n"
        f"    broker = pathlib.Path('/proc', pathlib.Path({str(marker)!r}).read_text())\n"
        "    os.write(1, f'broker alive: {broker.exists()}'.encode())\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
    )
    tiny(broker=broker + SLEEP, worker=worker + SLEEP)
    log = tmp_path / "logs" / "worker.log"
    with Stack.start(tmp_path):
        wait_until(lambda: log.exists() and "working" in log.read_text() and marker.exists())
    assert "broker alive: True" in log.read_text()


def test_a_store_that_was_started_again_outlives_the_workers_too(
    tiny: Tiny, tmp_path: Path
) -> None:
    """The kernel stops a child with the thread that started it; here that is the monitor."""
    marker = tmp_path / "broker.pid"
    broker = f"import os, pathlib; pathlib.Path({str(marker)!r}).write_text(str(os.getpid())); "
    worker = (
        "import os, pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(1.5)\n"
        f"    broker = pathlib.Path('/proc', pathlib.Path({str(marker)!r}).read_text())\n"
        "    os.write(1, f'broker alive: {broker.exists()}'.encode())\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
    )
    tiny(broker=broker + SLEEP, worker=worker + SLEEP)
    log = tmp_path / "logs" / "worker.log"
    with Stack.start(tmp_path) as stack:
        wait_until(lambda: log.exists() and "working" in log.read_text() and marker.exists())
        first = stack.pids("broker")[0]
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: marker.read_text() not in ("", str(first)))
        revived = int(marker.read_text())
    assert "broker alive: True" in log.read_text()
    assert not is_running(revived)


def test_a_child_that_cannot_be_started_again_stops_the_stack(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(StackFailed) as failure, Stack.start(tmp_path) as stack:
        wait_until(lambda: bool(stack.pids("worker")))
        monkeypatch.setattr(module.Child, "start", Mock(side_effect=full))
        os.kill(stack.pids("worker")[0], signal.SIGKILL)
        stack.wait()
    assert "worker was killed by SIGKILL" in failure.value.message
    assert "It cannot be started again (No space left on device)" in failure.value.message


@pytest.mark.usefixtures("tiny")
def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^192\.0\.2\.1 is no address of this machine"):
        Stack.start(tmp_path, host="192.0.2.1")


@pytest.mark.usefixtures("tiny")
def test_keys_open_the_first_project(tmp_path: Path) -> None:
    with Stack.start(tmp_path) as stack:
        assert not stack.has_keys()
        first, second = stack.create_key(), stack.create_key("other")
        assert stack.has_keys()
    assert first != second
    assert first.startswith("sk-rft-")

"""The guard leaves nothing of a command behind, however the command or its parent ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.process import guard
from tests.processes import await_gone

GUARD = Path(guard.__file__)
#: A command that ignores SIGTERM, with a grandchild in a session of its own, as servers have them.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep, start_new_session=True)
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


def start(code: str, *, grace_s: float, parent: int | None = None) -> subprocess.Popen[str]:
    command = [str(GUARD), str(grace_s), str(parent or os.getpid()), sys.executable, "-c", code]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", *command], stdout=subprocess.PIPE, text=True
    )


def read_pids(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


@pytest.mark.parametrize("code", [0, 7])
def test_exits_as_the_command_did(code: int) -> None:
    process = start(f"raise SystemExit({code})", grace_s=5)
    assert process.wait(timeout=30) == code


def test_names_the_signal_that_killed_the_command() -> None:
    process = start("import os; os.kill(os.getpid(), 9)", grace_s=5)
    assert process.wait(timeout=30) == 128 + signal.SIGKILL


def test_a_command_that_ignores_sigterm_ends_with_its_grandchildren() -> None:
    process = start(STUBBORN, grace_s=0.2)
    pids = read_pids(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 128 + signal.SIGKILL
    await_gone(pids)


def test_a_command_gets_the_time_it_needs_to_end_well() -> None:
    # os.write: a handler that prints may interrupt a print.
    code = (
        "import os, signal, sys, time\n"
        "def end(*_): time.sleep(0.5); os.write(1, b'saved\\n'); sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, end); os.write(1, b'up\\n'); time.sleep(600)"
    )
    process = start(code, grace_s=20)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 3
    assert process.stdout.read() == "saved\n"


def test_orphans_of_a_command_that_ended_are_killed() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)"
    )
    process = start(code, grace_s=5)
    pids = read_pids(process)
    assert process.wait(timeout=30) == 0
    await_gone(pids)


def test_everything_ends_when_the_parent_is_killed() -> None:
    parent_code = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-I', '-S', {str(GUARD)!r}, '0.2', str(os.getpid()),"
        f" sys.executable, '-c', {STUBBORN!r}])\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code], stdout=subprocess.PIPE, text=True
    )
    pids = read_pids(parent)
    parent.kill()
    parent.wait()
    await_gone(pids)


def test_the_command_ends_when_the_guard_is_killed() -> None:
    process = start("import os, time; print(os.getpid(), flush=True); time.sleep(600)", grace_s=5)
    pids = read_pids(process)
    process.kill()
    await_gone(pids)


def test_starts_nothing_when_the_parent_is_gone_already(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    process = start(f"open({str(mark)!r}, 'w')", grace_s=1, parent=1)
    assert process.wait(timeout=30) == 1
    assert not mark.exists()

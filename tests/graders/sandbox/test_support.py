"""Without Landlock or seccomp there is no sandbox, and no python grader."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graders.sandbox import SandboxConfig, support

ROOT = Path(__file__).parents[3]

#: Puts a filter of its own around a service: what a container or an old kernel may refuse.
AROUND = """
import json, sys
from graders.sandbox.jail import privileges, syscalls
from graders.sandbox.jail.libc import PR_SET_NO_NEW_PRIVS, prctl
from graders.sandbox.jail.seccomp import ALLOW, Installable, errno, give, program
refused, number, listen = json.loads(sys.argv[1])
import graders, asyncio
answers = {name: give(errno(number)) for name in refused}
prctl(PR_SET_NO_NEW_PRIVS, 1)
listener = Installable(program(syscalls.machine(), answers, ALLOW)).install(listen=listen)
spec = {"type": "python", "name": "p", "source": sys.argv[2]}
try:
    engine = graders.Engine(spec)
except graders.SpecError as error:
    print(json.dumps([error.code, str(error)]))
    sys.exit()
async def main():
    graded = await engine.grade({"output_text": ""}, {})
    await engine.close()
    print(json.dumps([repr(graded.outcome), graded.traces[0].output]))
asyncio.run(main())
"""


def within(refused: list[str], number: int = 38, *, listen: bool = False, source: str = "") -> Any:
    """What becomes of a python grader where these calls fail with this error."""
    source = source or "def grade(sample, item): return 1"
    done = subprocess.run(
        [sys.executable, "-c", AROUND, json.dumps([refused, number, listen]), source],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_supported_here() -> None:
    found = support(SandboxConfig().python)
    assert found.tier == "process"
    assert "Landlock ABI" in found.detail


def test_without_landlock_the_grader_is_refused() -> None:
    code, message = within(["landlock_create_ruleset"])
    assert code == "sandbox_unavailable"
    assert "The kernel offers no Landlock" in message


@pytest.mark.parametrize("refused", ["landlock_restrict_self", "landlock_add_rule"])
def test_half_a_landlock_is_none(refused: str) -> None:
    code, message = within([refused], 1)
    assert code == "sandbox_unavailable"
    assert "confine" in message


def test_without_seccomp_the_grader_is_refused() -> None:
    code, message = within(["seccomp"], 1)
    assert code == "sandbox_unavailable"
    assert "The kernel refuses seccomp filters" in message


TRYING = """
import os, threading
def grade(sample, item):
    print('printed')
    threading.Thread(target=print, args=('in a thread',)).start()
    for attempt in (os.fork, os.sync, lambda: open('/etc/passwd')):
        try:
            attempt()
        except OSError:
            pass
    import socket
    try:
        socket.socket()
    except PermissionError:
        return 0.5
    return 1.0
"""


def test_where_an_outer_filter_listens_calls_are_refused_but_not_counted() -> None:
    outcome, output = within([], listen=True, source=TRYING)
    assert outcome.startswith("Score(value=0.5")
    assert output == "printed\nin a thread\n"


def test_an_unsupported_machine_is_told_by_support() -> None:
    assert support("/nowhere/python3").tier is None
    assert "cannot be run" in support("/nowhere/python3").detail

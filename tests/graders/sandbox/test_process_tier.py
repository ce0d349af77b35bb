"""The process tier from outside: queue, cancellation, restart, clean-up."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from graders.outcome import Failure, Score
from graders.sandbox import ProcessSandbox, Program, SandboxConfig, SandboxError
from graders.sandbox.notices import MAX_NOTICES, Notices
from graders.sandbox.preload import worth_loading

Body = Callable[[ProcessSandbox], Awaitable[Any]]
ONE = Program("def grade(sample, item): return 1")
SLEEP = Program("import time\ndef grade(sample, item):\n    time.sleep(item['s'])\n    return 1")


def with_sandbox(body: Body, **limits: Any) -> Any:
    async def run() -> Any:
        sandbox = ProcessSandbox(SandboxConfig(**limits))
        try:
            return await body(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(run())


def test_more_calls_than_places_wait_their_turn() -> None:
    async def body(sandbox: ProcessSandbox) -> list[int]:
        done: list[int] = []

        async def one(n: int) -> None:
            await sandbox.run(ONE, {}, {})
            done.append(n)

        await asyncio.gather(*(one(n) for n in range(30)))
        return done

    assert with_sandbox(body, concurrency=1) == list(range(30))


def test_a_cancelled_call_frees_its_place() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        for _ in range(6):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await sandbox.run(SLEEP, {}, {"s": 60})
        assert (await sandbox.run(ONE, {}, {})).outcome == Score(1.0)

    with_sandbox(body, concurrency=1)


def test_a_killed_fork_server_is_replaced() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        assert (await sandbox.run(ONE, {}, {})).outcome == Score(1.0)
        running = asyncio.create_task(sandbox.run(SLEEP, {}, {"s": 60}))
        await asyncio.sleep(0.1)
        first = sandbox.server_pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with pytest.raises(SandboxError, match="ended unexpectedly"):
            await running
        assert (await sandbox.run(ONE, {}, {})).outcome == Score(1.0)
        assert sandbox.server_pid != first

    with_sandbox(body)


def test_nothing_is_left_when_it_ends(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if folder.owner() == "root" and os.getuid() == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    leaving = Program(
        "import tempfile\ndef grade(s, i):\n    open(tempfile.mkdtemp() + '/x', 'w').write('x')\n"
        "    return 1"
    )

    async def body(sandbox: ProcessSandbox) -> int | None:
        for _ in range(5):
            assert (await sandbox.run(leaving, {}, {})).outcome == Score(1.0)
        assert any(tmp_path.iterdir())
        return sandbox.server_pid

    pid = with_sandbox(body, tmp_dir=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{pid}").exists()


def test_children_die_with_the_fork_server() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        running = asyncio.create_task(sandbox.run(SLEEP, {}, {"s": 60}))
        while sandbox.server_pid is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        family = descendants(sandbox.server_pid)
        assert len(family) >= 4
        os.kill(sandbox.server_pid, signal.SIGKILL)
        with pytest.raises(SandboxError):
            await running
        for _ in range(100):
            alive = [pid for pid in family if _is_running(pid)]
            if not alive:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(alive)

    with_sandbox(body)


def descendants(pid: int) -> list[int]:
    """The ids of every process below this one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in children for each in (int(child), *descendants(int(child)))]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_one_sandbox_serves_one_loop_after_another() -> None:
    sandbox = ProcessSandbox(SandboxConfig())
    for _ in range(2):
        assert asyncio.run(sandbox.run(ONE, {}, {})).outcome == Score(1.0)
    asyncio.run(sandbox.close())


def test_a_large_sample_goes_through() -> None:
    program = Program("def grade(s, i): return len(s['output_text']) + i['x'][-1]")

    async def body(sandbox: ProcessSandbox) -> Any:
        return (
            await sandbox.run(program, {"output_text": "é" * 10**6}, {"x": [1] * 10**6})
        ).outcome

    assert with_sandbox(body) == Score(1_000_001.0)


def test_what_is_no_plain_data_is_refused_and_frees_its_place() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]

    async def body(sandbox: ProcessSandbox) -> None:
        for odd in (deep, object()):
            with pytest.raises(SandboxError, match="not plain data"):
                await sandbox.run(ONE, {}, {"x": odd})
        assert (await sandbox.run(ONE, {}, {})).outcome == Score(1.0)

    with_sandbox(body, concurrency=1)


def test_imports_are_loaded_once_and_only_known_ones() -> None:
    wanted = ["json", "numpy.linalg", "this", "os.path", "rft", "torch", "graders.python"]
    assert worth_loading(wanted, ["torch"]) == ["json", "numpy.linalg", "os.path", "torch"]
    program = Program("import sys\ndef grade(s, i): return 'colorsys' in sys.modules and 1", ())

    async def body(sandbox: ProcessSandbox) -> Any:
        sandbox.prepare(Program("", ("colorsys",)))
        return (await sandbox.run(program, {}, {})).outcome

    assert with_sandbox(body) == Score(1.0)


def test_what_acts_when_it_is_imported_is_not_loaded_outside_the_sandbox() -> None:
    # `venv.__main__` would make an environment wherever the arguments say, with the rights of
    # whoever loads it; others read files, run tests or end the process.
    acting = ["venv.__main__", "unittest.__main__", "numpy.f2py.__main__", "numpy._core._x"]
    testing = ["sympy.testing.runtests", "scipy.stats.tests.test_x", "pandas.conftest"]
    assert worth_loading([*acting, *testing, "unittest"]) == ["unittest"]


def test_a_module_that_ends_the_process_does_not_end_the_fork_server() -> None:
    async def body(sandbox: ProcessSandbox) -> Any:
        return (await sandbox.run(ONE, {}, {})).outcome

    assert with_sandbox(body, preload=("venv.__main__",)) == Score(1.0)


def test_a_notice_that_is_gone_before_it_is_answered_counts_too() -> None:
    # Signals take a waiting thread back, which asks again at once.
    notices = Notices()
    with open(os.devnull) as file:
        answers = [notices.answer(file.fileno()) for _ in range(MAX_NOTICES)]
    assert answers == [True] * (MAX_NOTICES - 1) + [False]


def test_calls_are_the_first_to_go_when_memory_runs_out() -> None:
    async def body(sandbox: ProcessSandbox) -> list[str]:
        await sandbox.run(ONE, {}, {})
        server = sandbox.server_pid
        zygotes = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return [Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in zygotes]

    assert with_sandbox(body, concurrency=1) == ["1000"] * 2


def test_numpy_is_a_number_and_draws_anew() -> None:
    pytest.importorskip("numpy")
    source = "import numpy\ndef grade(s, i): return numpy.float32(numpy.random.random())"

    async def body(sandbox: ProcessSandbox) -> list[Any]:
        program = Program(source, ("numpy",))
        sandbox.prepare(program)
        return [(await sandbox.run(program, {}, {})).outcome for _ in range(6)]

    outcomes = with_sandbox(body)
    assert all(isinstance(outcome, Score) for outcome in outcomes)
    assert len({outcome.value for outcome in outcomes}) == 6


def test_numpy_truth_and_arrays_are_no_numbers() -> None:
    pytest.importorskip("numpy")

    async def body(sandbox: ProcessSandbox) -> None:
        for value, name in (("numpy.bool_(1)", "bool"), ("numpy.array([1.0])", "ndarray")):
            program = Program(f"import numpy\ndef grade(s, i): return {value}", ("numpy",))
            outcome = (await sandbox.run(program, {}, {})).outcome
            assert isinstance(outcome, Failure)
            assert f"grade returned {name}" in outcome.detail

    with_sandbox(body)


def test_an_interpreter_that_is_not_there() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        with pytest.raises(SandboxError, match="cannot be run"):
            await sandbox.run(ONE, {}, {})

    with_sandbox(body, python="/nowhere/python3")


def test_an_interpreter_that_fails_says_its_last_words() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        with pytest.raises(SandboxError, match="did not start"):
            await sandbox.run(ONE, {}, {})

    with_sandbox(body, python="/bin/false")


def test_a_folder_that_cannot_be_made() -> None:
    async def body(sandbox: ProcessSandbox) -> None:
        with pytest.raises(SandboxError, match="cannot make its folder"):
            await sandbox.run(ONE, {}, {})

    with_sandbox(body, tmp_dir="/proc")

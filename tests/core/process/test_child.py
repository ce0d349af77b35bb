"""Children: output in a log, an environment of their own, an end that can be told."""

import os
import sys
from pathlib import Path

from core.process.child import Child, ChildSpec, describe_exit


def python(code: str, **options: object) -> ChildSpec:
    return ChildSpec(name="test", command=(sys.executable, "-c", code), **options)  # type: ignore[arg-type]


def test_output_and_exit_code(tmp_path: Path) -> None:
    child = Child(python("print('hello'); raise SystemExit(4)"), tmp_path / "test.log")
    child.start()
    child.wait()
    assert child.exit_code() == 4
    assert child.log_tail() == "hello"
    assert child.pids() == []


def test_the_log_tail_is_the_end(tmp_path: Path) -> None:
    child = Child(python("print(*range(100), sep='\\n')"), tmp_path / "test.log")
    child.start()
    child.wait()
    assert child.log_tail(2) == "98\n99"


def test_a_second_start_appends_to_the_log(tmp_path: Path) -> None:
    child = Child(python("print('once more')"), tmp_path / "test.log")
    for _ in range(2):
        child.start()
        child.wait()
    assert child.log_tail() == "once more\nonce more"


def test_the_environment_is_exactly_the_given_one(tmp_path: Path) -> None:
    os.environ["RFT_TEST_LEAK"] = "secret"
    try:
        spec = python(
            "import os; print(os.environ.get('RFT_TEST_LEAK'), os.environ['A'])", env={"A": "1"}
        )
        child = Child(spec, tmp_path / "test.log")
        child.start()
        child.wait()
    finally:
        del os.environ["RFT_TEST_LEAK"]
    assert child.log_tail() == "None 1"


def test_stop_ends_a_running_child(tmp_path: Path) -> None:
    child = Child(python("import time; time.sleep(600)"), tmp_path / "test.log")
    child.start()
    assert child.exit_code() is None
    child.ask_to_stop()
    child.wait()
    assert child.exit_code() is not None
    assert child.pids() == []


def test_exits_in_words() -> None:
    assert describe_exit(1) == "ended with exit code 1"
    assert describe_exit(137) == "was killed by SIGKILL"

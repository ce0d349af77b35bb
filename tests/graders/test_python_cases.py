"""Awkward python graders that people met in practice, each with others of its kind."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from graders import Engine, Failure, Score
from graders.engine import Graded
from graders.sandbox import SandboxConfig
from graders.services import ServicesConfig

CASES: dict[str, Any] = {
    case["id"]: case["input"]
    for case in map(json.loads, Path(__file__).with_name("cases.jsonl").open())
    if case["area"] == "grader-python"
}


def grade(
    source: str, items: list[dict[str, Any]], *, output_text: str = "", **limits: Any
) -> list[Graded]:
    """Grade one completion for each of the items, all at the same time."""
    spec = {"type": "python", "name": "p", "source": source}

    async def run() -> list[Graded]:
        engine = Engine(spec, ServicesConfig(sandbox=SandboxConfig(**limits)))
        try:
            sample = {"output_text": output_text}
            return await asyncio.gather(*(engine.grade(sample, item) for item in items))
        finally:
            await engine.close()

    return asyncio.run(run())


def failure(graded: Graded) -> Failure:
    assert isinstance(graded.outcome, Failure), graded
    return graded.outcome


def test_printed_text_is_kept_and_never_the_score() -> None:
    [graded] = grade(CASES["py-prints"]["source"], [{}])
    assert graded.outcome == Score(0.25)
    output = graded.traces[0].output
    assert output is not None
    assert output.startswith('{"score": 1.0}\nxxx')
    assert "more characters" in output
    assert len(output) < 20_000


@pytest.mark.parametrize(
    "prints",
    [
        "import sys; print('y' * 10**6, file=sys.stderr)",
        "import os; os.write(1, b'y' * 10**6)",
        "import ctypes; ctypes.CDLL(None).puts(b'y' * 10**6); ctypes.CDLL(None).fflush(None)",
        "[print('y' * 99) for _ in range(10_000)]",
    ],
)
def test_no_way_of_printing_gets_stuck(prints: str) -> None:
    [graded] = grade(f"def grade(sample, item):\n    {prints}\n    return 0.25", [{}])
    assert graded.outcome == Score(0.25)
    assert "yyy" in str(graded.traces[0].output)


def test_an_exception_is_told_with_type_message_and_line() -> None:
    case = CASES["py-raises"]
    [graded] = grade(case["source"], [case["item"]])
    assert failure(graded).kind == "python_grader_runtime_error"
    assert failure(graded).blame == "grader"
    assert "ZeroDivisionError: " in failure(graded).detail
    assert "(line 2: return 1.0 / len(item['tags']))" in failure(graded).detail


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def grade(s, i):\n    return i['x']", ("KeyError: 'x'", "line 2")),
        ("import rft_is_not_there\ndef grade(s, i): return 1", ("ModuleNotFoundError", "line 1")),
        ("1 / 0\ndef grade(s, i): return 1", ("ZeroDivisionError", "line 1")),
        ("def f():\n    import json\n    json.loads('x')\ndef grade(s, i): f()", ("line 3",)),
        ("def grade(s, i): exec('a b')", ("SyntaxError", "line 1")),
        ("def grade(s, i): raise SystemExit(3)", ("SystemExit: 3", "line 1")),
        ("def grade(s, i): raise KeyboardInterrupt", ("KeyboardInterrupt", "line 1")),
        ("def grade(s, i): grade(s, i)", ("RecursionError", "line 1")),
        ("def grade(s, i): return [0] * 10**12", ("MemoryError", "2,048 MB")),
        ("grade = 5", ("TypeError: 'int' object is not callable",)),
        ("def grade(s, i): return s['output_json']", ("KeyError: 'output_json'",)),
        ("def grade(s, i):\n    raise ExceptionGroup('two', [ValueError()])", ("ExceptionGroup",)),
    ],
)
def test_other_exceptions(source: str, words: tuple[str, ...]) -> None:
    [graded] = grade(source, [{}])
    assert failure(graded).kind == "python_grader_runtime_error"
    for word in words:
        assert word in failure(graded).detail


@pytest.mark.parametrize("oddity", ["\x0c", "x = 'a\u2028b'", "x = '\x1c\x85'", "# \x0b\r"])
def test_lines_are_counted_as_python_counts_them(oddity: str) -> None:
    [graded] = grade(f"{oddity}\ndef grade(s, i):\n    return 1 / 0", [{}])
    assert "(line 3: return 1 / 0)" in failure(graded).detail


def test_a_loop_is_killed_and_holds_up_nothing() -> None:
    source = CASES["py-loops-forever"]["source"].replace(
        "def grade(sample, item):", "def grade(sample, item):\n    if item['i']: return 1.0"
    )
    started = time.monotonic()
    graded = grade(source, [{"i": 0}, *({"i": n} for n in range(1, 40))], timeout_s=1.0)
    assert failure(graded[0]).kind == "python_grader_timeout"
    assert failure(graded[0]).blame == "grader"
    assert "longer than 1 s" in failure(graded[0]).detail
    assert [each.outcome for each in graded[1:]] == [Score(1.0)] * 39
    assert time.monotonic() - started < 20


def test_what_was_printed_before_a_kill_is_kept() -> None:
    source = "def grade(s, i):\n    print('so far')\n    while True: pass"
    [graded] = grade(source, [{}], timeout_s=0.5)
    assert failure(graded).kind == "python_grader_timeout"
    assert graded.traces[0].output == "so far\n"


def test_nan_and_infinity_are_failures() -> None:
    case = CASES["py-nan-inf"]
    for graded in grade(case["source"], case["items"]):
        assert failure(graded).kind == "non_finite_reward"


def test_the_network_is_refused_and_counted() -> None:
    [graded] = grade(CASES["py-network"]["source"], [{}])
    assert graded.outcome == Score(0.5)
    first, *_ = str(graded.traces[0].output).splitlines()
    assert "system calls were refused: " in first
    assert "socket 1" in first
    assert "clone" in first or "vfork" in first


def test_signals_are_the_graders_own() -> None:
    source = CASES["py-signal-alarm"]["source"]
    leaking = source.replace("signal.alarm(0)", "")
    for code in (source, leaking):
        assert [each.outcome for each in grade(code, [{}] * 5)] == [Score(1.0)] * 5


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("def grade(sample, item): return 1", 1.0),
        ("def grade(sample, item): return -2.5", -2.5),
        ("def grade(sample, item, /): return len(sample['output_text'])", 8.0),
        ("def grade(*both): return len(both)", 2.0),
        ("def grade(sample, item, weight=0.5): return weight", 0.5),
        ("grade = lambda sample, item: item['n']", 7.0),
        ("class G:\n    def __call__(self, s, i): return 3\ngrade = G()", 3.0),
        ("def grade(sample, item): return sample['output_json']['a']", 4.0),
        ("from dataclasses import dataclass\n@dataclass\nclass D:\n    x: int\n"
         "def grade(sample, item): return D(6).x", 6.0),
        ("def grade(sample, item):\n    return float(__name__ == '__main__')", 0.0),
    ],
)  # fmt: skip
def test_what_works(source: str, value: float) -> None:
    [graded] = grade(source, [{"n": 7}], output_text='{"a": 4}')
    assert graded.outcome == Score(value)

"""The spec of a `python` grader: what is refused before anything runs, and what is said of it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from graders import Failure, Score, SpecError, parse_grader, warnings
from graders.sandbox import SandboxConfig, inspection
from graders.sandbox.forkserver import ForkServer
from tests.graders.examples import grade, multi

GOOD = "def grade(sample, item):\n    return 0.5"


def python(source: str = GOOD, **changes: Any) -> dict[str, Any]:
    return {"type": "python", "name": "p", "source": source} | changes


def refused(spec: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_grader(spec)
    return caught.value


def test_the_image_is_filled_in() -> None:
    assert parse_grader(python()).wire() == python(image_tag="2025-05-08")
    assert parse_grader(python(pass_threshold=0.5)).wire()["pass_threshold"] == 0.5


def test_another_image_is_refused() -> None:
    error = refused(python(image_tag="2024-01-01"))
    assert (error.param, "2025-05-08" in str(error)) == ("image_tag", True)


def test_an_unknown_field_is_refused() -> None:
    assert "did you mean 'source'?" in str(refused(python(sourc="x")))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def grade(sample, item:\n    return 1", "never closed (line 1, column 10)"),
        ("x = 1\n  y = 2\ndef grade(s, i): return 1", "Unexpected indent (line 2"),
        ("x = '\0'", "null bytes"),
        ("", "defines no function grade"),
        ("def grades(sample, item): return 1", "defines no function grade"),
        ("class X:\n    def grade(self, s, i): return 1", "defines no function grade"),
        ("def grade(sample): return 1", "two positional arguments, sample and item (line 1)"),
        ("def grade(sample, item, more): return 1", "two positional arguments"),
        ("def grade(sample, *, item): return 1", "two positional arguments"),
        ("async def grade(sample, item): return 1", "not async"),
        ("(" * 500 + ")" * 500, "nested"),
        ("-" * 100_000 + "1", "too deeply nested"),
        ("x = " + "+".join(["a"] * 50_000), "too deeply nested"),
        ("x = " + "[" * 150 + "]" * 150 + "\ndef grade(a): pass", "two positional"),
    ],
)
def test_source_that_cannot_be_a_grader(source: str, words: str) -> None:
    error = refused(python(source))
    assert (error.code, error.param) == ("python_parse_error", "source")
    assert words in str(error)


@pytest.mark.parametrize(
    "source",
    [
        "grade = lambda sample, item: 1",
        "def grade(*both): return 1",
        "def grade(sample, item, more=1): return 1",
        "import os\nif os.sep == '/':\n    def grade(s, i): return 1\nelse:\n    grade = None",
        "try:\n    from somewhere import grade\nexcept ImportError:\n    def grade(s, i): return 1",
        "from somewhere import *",
        "import functools\n@functools.cache\ndef grade(*a, k=1): return 1",
        "grade: object = print",
        "x, grade = 1, print",
    ],
)
def test_source_that_may_be_a_grader(source: str) -> None:
    parse_grader(python(source))


def test_compiling_is_bounded() -> None:
    # Constant folding and large literals: costly to compile, and refused or fine, but soon.
    parse_grader(python(f"x = {'9' * 4_000} ** 9 ** 9\n{GOOD}"))
    parse_grader(python("x = [\n" + "1,\n" * 50_000 + "]\n" + GOOD))


def test_no_number_of_warnings_holds_up_compiling() -> None:
    # Each makes Python print a few lines, which nobody reads here.
    doubtful = "\n".join(f"x{n} = 1 is 1" for n in range(2_000))
    parse_grader(python(f"{doubtful}\n{GOOD}"))


def test_only_few_sources_are_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nested `finally`: a kilobyte of source for a gigabyte of code.
    started, running, most = inspection._started, [], []

    def watched(python: str) -> ForkServer:
        server = started(python)
        running.append(server)
        most.append(len(running))
        end = server.end
        server.end = lambda: (running.remove(server), end())  # type: ignore[method-assign]
        return server

    monkeypatch.setattr(inspection, "_started", watched)
    sources = [f"{GOOD} + {n}" for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda source: parse_grader(python(source)), sources))
    assert len(most) == 8
    assert max(most) <= inspection.MAX_AT_A_TIME


def test_source_has_a_size() -> None:
    parse_grader(python(GOOD + "\n#" + "x" * 255_000))
    assert "256,000 bytes" in str(refused(python(GOOD + "\n#" + "é" * 128_000)))


def test_packages_that_are_not_there_are_warned_about() -> None:
    source = "import json, rft_not_there.x\nfrom rft_nor_this import y\n" + GOOD
    [warning] = warnings(parse_grader(python(source)))
    assert "rft_nor_this, rft_not_there" in warning
    assert "json" not in warning


def test_nothing_of_the_source_runs_when_it_is_read(tmp_path: Any) -> None:
    mark = tmp_path / "ran"
    parse_grader(python(f"open({str(mark)!r}, 'w')\n{GOOD}"))
    assert not mark.exists()


def test_without_a_sandbox_the_grader_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFT_SANDBOX_PYTHON", "/nowhere/python3")
    assert SandboxConfig().python == "/nowhere/python3"
    error = refused(python())
    assert error.code == "sandbox_unavailable"
    assert "cannot run here" in str(error)
    assert refused(multi({"a": python()}, "a")).param == "graders.a.type"


def test_in_a_multi() -> None:
    graders = {"a": python(), "b": python("def grade(s, i): return i['n']")}
    spec = multi(graders, "a * b")
    assert grade(spec, "", {"n": 4}) == Score(2.0, {"a": 0.5, "b": 4.0})
    outcome = grade(spec, "", {})
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.grader) == ("python_grader_runtime_error", "b")
    assert outcome.sub_scores == {"a": 0.5}


def test_only_what_the_sample_is_to_blame_for_has_an_invalid_grade() -> None:
    spec = python("def grade(s, i): return s['output_json']['x']", invalid_grade=-1.0)
    assert isinstance(grade(spec, "no JSON"), Failure)
    assert grade(spec, '{"x": 3}') == Score(3.0)

"""docs/graders.md says what the graders do: its examples run, its tables are complete."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graders import GRADERS, KINDS, Failure, Score, parse_grader
from graders.base import Spec
from graders.formats import FORMATS
from graders.formula import FUNCTIONS, Formula
from graders.paths import SAMPLE_FIELDS
from tests.graders.doc_examples import outcomes

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "graders.md").read_text(encoding="utf-8")
PAIRS = re.findall(r"```json grader\n(.*?)```\s+```json grades\n(.*?)```", TEXT, re.DOTALL)
EXAMPLES = [
    (json.loads(spec), example) for spec, examples in PAIRS for example in json.loads(examples)
]


@pytest.mark.parametrize(("spec", "example"), EXAMPLES)
def test_example(spec: dict[str, Any], example: dict[str, Any]) -> None:
    found = outcomes(spec, example)
    if "failure" in example:
        assert [o.kind for o in found if isinstance(o, Failure)] == [example["failure"]] * len(
            found
        )
    else:
        values = [outcome.value for outcome in found if isinstance(outcome, Score)]
        assert values == pytest.approx(example.get("scores") or [example["score"]])


def test_every_grader_type_has_an_example() -> None:
    assert {spec["type"] for spec, _ in EXAMPLES} == set(GRADERS)


def test_every_field_is_documented() -> None:
    for spec in GRADERS.values():
        for name, field in spec.model_fields.items():
            assert f"`{field.alias or name}`" in TEXT


def test_python_example_runs() -> None:
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "docs/graders.md", "exec"), {})


def test_formulas() -> None:
    [block] = re.findall(r"```json formulas\n(.*?)```", TEXT, re.DOTALL)
    for formula, value in json.loads(block).items():
        assert Formula.parse(formula).evaluate({}) == pytest.approx(value)


def test_every_failure_kind_is_listed_as_it_is() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert rows == [(n, kind.blame, kind.flag, kind.meaning) for n, kind in KINDS.items()]


def test_functions_formats_and_variables_are_listed() -> None:
    for name in (*FUNCTIONS, *FORMATS, *(f"sample.{field}" for field in SAMPLE_FIELDS)):
        assert f"`{name}`" in TEXT


def test_common_fields_are_those_of_the_base_spec() -> None:
    example = parse_grader(EXAMPLES[0][0])
    assert isinstance(example, Spec)
    assert set(Spec.model_fields) == {"type", "name", "pass_threshold", "invalid_grade"}

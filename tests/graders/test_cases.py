"""Awkward graders that people met in practice, with the right answer to each."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from graders import Failure, Score, SpecError, check_rows, parse_grader, warnings
from graders.formula import Formula
from graders.lint import hints
from tests.graders.examples import grade, json_schema, multi, string_check

CASES: dict[str, Any] = {
    case["id"]: case["input"]
    for case in map(json.loads, Path(__file__).with_name("cases.jsonl").open())
}


def test_missing_field_is_found_before_and_failed_at_run_time() -> None:
    case = CASES["tmpl-missing-field"]
    [problem] = check_rows(parse_grader(case["grader"]), [case["item"]] * 3)
    assert (problem.path, problem.suggestion) == ("item.answr", "item.answer")
    assert (problem.missing, problem.rows) == (3, 3)
    outcome = grade(case["grader"], case["sample"], case["item"])
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("invalid_variable_error", "data")


def test_output_that_is_not_pure_json() -> None:
    case = CASES["tmpl-output-json-invalid"]
    outcome = grade(case["grader"], case["sample"], case["item"])
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("sample_parse_error", "sample")
    assert grade(case["grader"], '{"compliant": true}', case["item"]) == Score(1.0)

    penalised = grade({**case["grader"], "invalid_grade": -0.5}, case["sample"], case["item"])
    assert isinstance(penalised, Score)
    assert penalised.value == -0.5
    assert [(note.grader, note.kind) for note in penalised.notes] == [("g", "sample_parse_error")]


def test_division_by_zero_keeps_the_sub_scores_and_is_warned_about() -> None:
    case = CASES["multi-div-zero"]
    outcome = grade(case["grader"], case["sample"], case["item"])
    assert isinstance(outcome, Failure)
    assert outcome.kind == "formula_runtime"
    assert "division by zero" in outcome.detail
    assert outcome.sub_scores == {"a": 1.0, "b": 0.0}
    [warning] = warnings(parse_grader(case["grader"]))
    assert "b=0" in warning


@pytest.mark.parametrize(
    "formula", ["log(b)", "sqrt(b - 1)", "b ^ -1", "exp(1000 * a)", "1e308 * 10 * a"]
)
def test_other_formulas_without_a_value(formula: str) -> None:
    case = CASES["multi-div-zero"]
    outcome = grade({**case["grader"], "calculate_output": formula}, case["sample"])
    assert isinstance(outcome, Failure)
    assert outcome.kind == "formula_runtime"


def test_formulas_are_no_python() -> None:
    formula = CASES["multi-formula-injection"]["calculate_output"]
    with pytest.raises(SpecError, match="column 4") as caught:
        parse_grader(multi({"min": string_check()}, formula))
    assert caught.value.code == "formula_parse_error"


def test_shapes_of_multi() -> None:
    as_map, as_list, single, unbalanced = (
        {"type": "multi", "name": "m", **variant}
        for variant in CASES["multi-shape-variants"]["variants"]
    )
    wanted = parse_grader(as_map).wire()
    assert wanted == as_map
    assert parse_grader(as_list).wire() == wanted
    # The API specification types `graders` as one grader, so typed SDKs can only send that.
    assert parse_grader(single).wire() == {**wanted, "calculate_output": "ok"}
    with pytest.raises(SpecError, match="column 9") as caught:
        parse_grader(unbalanced)
    assert (caught.value.code, caught.value.param) == ("formula_parse_error", "calculate_output")


def test_remote_reference_is_refused_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_arguments: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_network)
    schema = CASES["schema-remote-ref"]["response_format"]["json_schema"]["schema"]
    with pytest.raises(SpecError, match="only references into the schema itself") as caught:
        parse_grader(json_schema(schema))
    assert caught.value.code == "invalid_schema"


def test_unicode_forms_differ_unless_normalised() -> None:
    case = string_check(**CASES["str-unicode-form"])
    assert grade(case, "") == Score(0.0)
    assert grade({**case, "normalize": "nfc"}, "") == Score(1.0)
    [hint] = hints(parse_grader(case), {"output_text": ""}, {})
    assert "only by Unicode normalisation" in hint
    assert hints(parse_grader({**case, "normalize": "nfc"}), {"output_text": ""}, {}) == []
    spaced = string_check(input="1\u00a0０", reference="1 0")
    assert grade({**spaced, "normalize": "nfc"}, "") == Score(0.0)
    assert grade({**spaced, "normalize": "nfkc"}, "") == Score(1.0)


def test_formula_functions_are_listed_when_one_is_unknown() -> None:
    with pytest.raises(ValueError, match="min, max, abs, floor, ceil, exp, sqrt, log"):
        Formula.parse("round(a)")


def test_thousands_are_grouped_validly_or_not_at_all() -> None:
    number = {"type": "number", "name": "n", "reference": "{{item.answer}}"}
    pairs = CASES["num-thousands"]["pairs"]
    scores = [grade(number, text, {"answer": answer}) for text, answer in pairs]
    assert scores == [Score(1.0)] * 4 + [Score(0.0)]

"""What stands for a good answer, and which completions are shown for being unlike it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.trainer.rollouts import rollout
from trainer.dry_run.suspicious import PAIRS, find_reference, similarity, suspicious
from trainer.spec import TrainSpec

CHECK = {
    "type": "string_check",
    "name": "same",
    "operation": "like",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}


@pytest.fixture
def spec_of(make_job: Callable[..., Any]) -> Callable[..., TrainSpec]:
    """Make the spec of a job without a warm start."""

    def make(**changes: Any) -> TrainSpec:
        return TrainSpec.load(make_job(**{"grader": CHECK, "warm_start": None, **changes}))

    return make


def children(*references: str) -> dict[str, Any]:
    made = {f"c{i}": {**CHECK, "reference": text} for i, text in enumerate(references)}
    return {"type": "multi", "name": "m", "graders": made, "calculate_output": "c0"}


def path(spec: TrainSpec, *items: dict[str, Any]) -> str | None:
    found = find_reference(spec, items)
    return None if found is None else str(found.path)


def test_the_reference_is_what_the_grader_reads(spec_of: Callable[..., TrainSpec]) -> None:
    assert path(spec_of(), {"answer": "a", "reference": "b"}) == "item.answer"


def test_parts_of_one_field_stand_together(spec_of: Callable[..., TrainSpec]) -> None:
    grader = children("{{item.ticket.product.name}}", "{{item.ticket.urgency}}")
    item = {"ticket": {"product": {"name": "lamp"}, "urgency": "high"}, "other": "x" * 50}
    assert path(spec_of(grader=grader), item) == "item.ticket"
    one = children("{{item.ticket.product.name}}", "{{item.ticket.product.name}} a")
    spec = spec_of(name="other", grader=one)
    assert path(spec, item) == "item.ticket.product.name"


def test_of_several_fields_the_longest_is_taken(spec_of: Callable[..., TrainSpec]) -> None:
    grader = children("{{item.unit}}", "{{item.solution[0]}}", "{{item.id}}")
    items = [{"unit": "m", "solution": ["a long way to say it"], "id": 17}] * 2
    assert path(spec_of(grader=grader), *items) == "item.solution[0]"


def test_what_a_warm_start_imitates_comes_first(spec_of: Callable[..., TrainSpec]) -> None:
    warm = {"epochs": 1, "learning_rate": 1e-3, "batch_size": 2, "reference_field": "shown"}
    assert path(spec_of(warm_start=warm), {"answer": "a", "shown": "b"}) == "item.shown"


def test_a_grader_that_names_no_field_leaves_usual_names(
    spec_of: Callable[..., TrainSpec],
) -> None:
    spec = spec_of(grader={**CHECK, "reference": "fixed"})
    assert path(spec, {"label": "x", "answer": "a"}, {"label": "y", "answer": "b"}) == "item.answer"
    assert path(spec, {"label": "x", "answer": "a"}, {"label": "y"}) == "item.label"
    assert path(spec, {"row": 1}) is None


@pytest.mark.parametrize(
    ("text", "reference", "low", "high"),
    [
        ("The answer is 42.", "42", 1.0, 1.0),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', 1.0, 1.0),
        ("Paris", "paris!", 1.0, 1.0),
        ("I cannot say.", "a lamp in the kitchen", 0.0, 0.5),
        ("+", "+", 1.0, 1.0),
        ("", "42", 0.0, 0.0),
    ],
)
def test_similarity(text: str, reference: str, low: float, high: float) -> None:
    assert low <= similarity(text, reference) <= high


def shown(spec: TrainSpec, *made: tuple[str, float], at: float = 1.0) -> dict[str, Any]:
    rollouts = [
        rollout(score, row=i, text=text, item={"answer": "a lamp in the kitchen"})
        for i, (text, score) in enumerate(made)
    ]
    return suspicious(spec, rollouts, [["said"]] * len(rollouts), solved_at=at)


def test_high_and_unlike_is_shown_the_least_alike_first(
    spec_of: Callable[..., TrainSpec],
) -> None:
    found = shown(
        spec_of(), ("a kitchen", 1.0), ("A LAMP IN THE KITCHEN", 1.0), ("zzz", 1.0), ("qqq", 0.0)
    )
    assert [pair["text"] for pair in found["pairs"]] == ["zzz"]
    pair = found["pairs"][0]
    assert (pair["row"], pair["score"], pair["hints"]) == (2, 1.0, ["said"])
    assert pair["reference"] == "a lamp in the kitchen"
    assert pair["similarity"] < 0.5
    assert found["compared"] == 4
    assert "item.answer, which the grader reads" in found["how"]
    assert "score 1 or more" in found["how"]


def test_where_nothing_is_solved_the_best_are_looked_at(
    spec_of: Callable[..., TrainSpec],
) -> None:
    low = [("zzz", 0.1)] * 8
    found = shown(spec_of(), *low, ("qqq", 0.6), ("xxx", 0.6))
    assert {pair["text"] for pair in found["pairs"]} == {"qqq", "xxx"}
    assert {
        pair["text"] for pair in shown(spec_of(name="few"), *low * 4, ("qqq", 0.6))["pairs"]
    } == {"qqq"}
    same = shown(spec_of(name="same"), *[("zzz", 0.0)] * 4)
    assert same["pairs"] == []
    assert same["how"].endswith("No completion scores above the others, so none is listed.")


def test_the_list_is_short(spec_of: Callable[..., TrainSpec]) -> None:
    found = shown(spec_of(), *[(f"z{i}", 1.0) for i in range(30)])
    assert len(found["pairs"]) == PAIRS


def test_without_a_reference_nothing_is_compared(spec_of: Callable[..., TrainSpec]) -> None:
    spec = spec_of(grader={**CHECK, "reference": "fixed"})
    found = suspicious(spec, [rollout(1.0)], [[]], solved_at=1.0)
    assert (found["reference"], found["compared"], found["pairs"]) == (None, 0, [])
    assert "no field that stands for a good answer" in found["how"]


def test_masked_headers_are_no_obstacle(spec_of: Callable[..., TrainSpec]) -> None:
    endpoint = {
        "type": "endpoint",
        "name": "mine",
        "url": "https://grader.example.com/score",
        "headers": {"Authorization": "**********"},
    }
    grader = {**children("{{item.answer}}"), "calculate_output": "c0 + e"}
    grader["graders"]["e"] = endpoint
    assert path(spec_of(grader=grader), {"answer": "a"}) == "item.answer"

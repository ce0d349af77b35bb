"""Every figure of the report, from rollouts made by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from api.schemas.dry_run_report import DryRunReport
from graders.outcome import Abstain, Failure, Note, Score
from graders.trace import Trace, Usage
from tests.trainer.rollouts import group, rollout
from trainer.dry_run.estimate import Rates
from trainer.dry_run.report import histogram, make_report
from trainer.dry_run.texts import MAX_CHARS
from trainer.sampling import Rollout
from trainer.spec import TrainSpec

RATES = Rates(
    completions_per_s=10.0,
    tokens_per_s=40.0,
    update_tokens_per_s=100.0,
    grading_latency_mean_s=0.001,
    warmed_up=True,
)
GRADER = {
    "type": "multi",
    "name": "reward",
    "graders": {
        "exact": {
            "type": "string_check",
            "name": "exact",
            "operation": "eq",
            "input": "{{sample.output_text}}",
            "reference": "{{item.answer}}",
        },
        "judge": {
            "type": "string_check",
            "name": "judge",
            "operation": "like",
            "input": "{{sample.output_text}}",
            "reference": "a",
        },
    },
    "calculate_output": "exact + judge",
}
FAILED = Failure("sample_parse_error", "not JSON", "exact")


@pytest.fixture
def spec_of(make_job: Callable[..., Any]) -> Callable[..., TrainSpec]:
    """Make the spec of a dry run of a method with known numbers."""

    def make(**changes: Any) -> TrainSpec:
        plan = {"rows": 4, "samples_per_row": 2, "price_per_hour": None, "currency": "USD"}
        hyper = {"max_steps": 10, "batch_size": 4, "group_size": 5, "max_completion_tokens": 8}
        values = {"grader": GRADER, "warm_start": None, "dry_run": plan, "hyperparameters": hyper}
        return TrainSpec.load(make_job(**{**values, **changes}))

    return make


def report_of(spec: TrainSpec, *groups: list[Rollout], validation_rows: int = 0) -> dict[str, Any]:
    report = make_report(spec, list(groups), RATES, rows_in_file=9, validation_rows=validation_rows)
    shown = DryRunReport.model_validate(report).model_dump()
    assert shown == report
    return report


def test_outcomes_scores_and_rows_add_up(spec_of: Callable[..., TrainSpec]) -> None:
    stood_in = Score(0.0, {}, (Note("exact", "sample_parse_error", "not JSON"),))
    report = report_of(
        spec_of(),
        group(0.0, 0.0, row=3),
        group(1.0, 1.0, row=1),
        group(0.0, 1.0, row=2),
        group(FAILED, stood_in, row=0),
        [rollout(Abstain("no idea"), row=4), rollout(1.0, row=4, truncated=True)],
    )
    assert report["outcomes"] == {"scores": 8, "abstentions": 1, "failures": 1, "stood_in": 1}
    assert (report["rows"], report["completions"], report["rows_in_file"]) == (5, 10, 9)
    assert report["score"]["mean"] == pytest.approx(4 / 8)
    solved = report["solved"]
    assert (solved["never"], solved["sometimes"], solved["always"]) == (2, 2, 1)
    assert solved["share"]["mean"] == pytest.approx(0.4)
    assert report["groups"]["with_spread"] == 1
    assert report["groups"]["too_few"] == 2
    assert report["truncation"] == {"count": 1, "share": 0.1}
    assert [row["row"] for row in report["by_row"]] == [3, 1, 2, 0, 4]
    assert report["by_row"][3] == {
        "row": 0,
        "prompt": "row 0",
        "scores": [None, 0.0],
        "solved": 0,
        "truncated": 0,
        "failed": 1,
        "spread": False,
    }


def test_failures_are_told_by_kind_with_examples(spec_of: Callable[..., TrainSpec]) -> None:
    note = Note("exact", "sample_parse_error", "not JSON either")
    judge = Failure("model_grader_server_error", "503", "judge")
    long = rollout(Score(0.0, {}, (note,)), text="x" * (MAX_CHARS + 10) + "\0")
    report = report_of(spec_of(), [*group(FAILED, FAILED, FAILED), long], group(judge, 0.0))
    first, second = report["failures"]
    assert (first["kind"], first["grader"], first["count"], first["stood_in"]) == (
        "sample_parse_error",
        "exact",
        4,
        1,
    )
    assert first["share"] == pytest.approx(4 / 6)
    assert len(first["examples"]) == 3
    assert (second["kind"], second["blame"]) == ("model_grader_server_error", "infrastructure")
    assert report["verdict"]["level"] == "bad"
    assert "mostly sample_parse_error in 'exact'" in report["verdict"]["message"]


def test_nothing_but_failures_is_a_report_too(spec_of: Callable[..., TrainSpec]) -> None:
    report = report_of(spec_of(), group(FAILED, FAILED), group(FAILED, FAILED))
    assert report["score"] == {"mean": None, "low": None, "high": None}
    assert report["histogram"] == []
    assert report["verdict"]["level"] == "bad"


@pytest.mark.parametrize(
    ("scores", "edges", "counts"),
    [
        ([0.0, 0.05, 1.0], (0.0, 0.1, 1.0), {0: 2, 9: 1}),
        ([2.0, 2.0], (2.0, 2.1, 3.0), {0: 2}),
        ([-1.0, 0.0, 1.0], (-1.0, -0.8, 1.0), {0: 1, 5: 1, 9: 1}),
    ],
)
def test_the_histogram(
    scores: list[float], edges: tuple[float, float, float], counts: dict[int, int]
) -> None:
    bars = histogram(scores)
    assert len(bars) == 10
    assert (bars[0]["low"], bars[0]["high"], bars[-1]["high"]) == edges
    assert {i: bar["count"] for i, bar in enumerate(bars) if bar["count"]} == counts


def traced(score: float, row: int, *, agreement: float | None = None) -> Rollout:
    judge = Trace("judge", "string_check", latency_s=0.5, model="small", usage=Usage(90, 10, 30))
    judge.agreement, judge.score = agreement, score
    whole = Trace("reward", "multi", latency_s=0.6, score=score)
    exact = Trace("exact", "string_check", latency_s=0.0, cached=True, score=0.0)
    return rollout(score, row=row, traces=(whole, exact, judge))


def test_each_grader_has_its_speed_and_tokens(spec_of: Callable[..., TrainSpec]) -> None:
    report = report_of(
        spec_of(),
        [traced(0.5, 0, agreement=-0.5), traced(0.5, 0, agreement=-0.5)],
        [traced(1.0, 1, agreement=1.0), traced(0.0, 1, agreement=1.0)],
    )
    whole, exact, judge = report["graders"]
    assert [g["grader"] for g in report["graders"]] == ["reward", "exact", "judge"]
    assert (whole["type"], whole["tokens"], whole["latency_s"]["p95"]) == ("multi", None, 0.6)
    assert (exact["cached"], exact["score_mean"]) == (4, 0.0)
    assert judge["tokens"] == {"prompt": 360, "completion": 40, "cached": 120}
    assert (judge["model"], judge["score_mean"]) == ("small", 0.5)
    (votes,) = report["disagreement"]
    assert (votes["grader"], votes["judged"], votes["agreement_mean"]) == ("judge", 4, 0.25)
    assert [e["row"] for e in votes["examples"]] == [0, 1]
    (tokens,) = report["estimate"]["judge_tokens"]
    # 200 completions of the job at 100 tokens each; they may grow to half as long again.
    assert (tokens["low"], tokens["high"]) == (20_000, 30_000)
    assert tokens["prompt_share"] == 0.9


def test_near_misses_are_counted(spec_of: Callable[..., TrainSpec]) -> None:
    item = {"answer": "Paris"}
    report = report_of(spec_of(), group(0.0, 0.0, text="paris", item=item))
    (hint,) = report["hints"]
    assert "only by upper and lower case" in hint["hint"]
    assert hint["count"] == 2
    assert hint["examples"][0]["detail"] == "score 0"


def test_the_estimate_says_how_it_was_made(spec_of: Callable[..., TrainSpec]) -> None:
    # 10 steps × 4 prompts × 5 completions; 4 tokens each; every second group has spread.
    estimate = report_of(spec_of(), group(0.0, 1.0), group(0.0, 0.0, row=1))["estimate"]
    assert estimate["plan"] == {
        "steps": 10,
        "prompts_per_step": 4,
        "completions_per_prompt": 5,
        "training_completions": 200,
        "evaluation_completions": 0,
    }
    sampling, update = 200 / 10, 200 * 4 / 100
    assert estimate["seconds"]["low"] == pytest.approx(sampling + update / 2)
    assert estimate["seconds"]["high"] == pytest.approx((sampling + update) * 1.5 * 1.25)
    assert estimate["cost"] is None
    assert any("200 completions" in text for text in estimate["made_of"])


def test_what_hyperparameters_add_is_estimated(spec_of: Callable[..., TrainSpec]) -> None:
    size = {"max_steps": 10, "batch_size": 4, "group_size": 5, "max_completion_tokens": 8}
    more = {"rollout_epochs": 2, "resample_rounds": 3, "max_staleness": 1}
    spec = spec_of(hyperparameters={**size, **more})
    estimate = report_of(spec, group(0.0, 1.0), group(0.0, 0.0, row=1))["estimate"]
    sampling, again, update = 200 / 10, 3 * 0.5 * 200 / 10, 2 * 200 * 4 / 100
    assert estimate["seconds"]["low"] == pytest.approx(max(sampling, update / 2))
    assert estimate["seconds"]["high"] == pytest.approx((sampling + again + update) * 1.5 * 1.25)
    assert any("trained on 2 times" in text for text in estimate["made_of"])


@pytest.mark.parametrize(("scores", "level"), [((0.0, 1.0), "good"), ((1.0, 1.0), "bad")])
def test_algorithms_that_compare_whole_steps_need_no_spread_in_groups(
    spec_of: Callable[..., TrainSpec], scores: tuple[float, float], level: str
) -> None:
    size = {"max_steps": 10, "batch_size": 4, "group_size": 5, "max_completion_tokens": 8}
    spec = spec_of(hyperparameters={**size, "algorithm": "reinforce++"})
    low, high = scores
    report = report_of(spec, group(low, low), group(high, high, row=1))
    assert report["verdict"]["level"] == level
    assert report["estimate"]["seconds"]["low"] == pytest.approx(200 / 10 + 200 * 4 / 100)


def test_completions_do_not_grow_beyond_their_limit(spec_of: Callable[..., TrainSpec]) -> None:
    estimate = report_of(spec_of(), group(0.0, 1.0, tokens=8))["estimate"]
    sampling, update = 200 / 10, 200 * 8 / 100
    assert estimate["seconds"]["high"] == pytest.approx((sampling + update) * 1.25)


def test_evaluations_and_the_price_are_in_the_estimate(
    spec_of: Callable[..., TrainSpec],
) -> None:
    plan = {"rows": 4, "samples_per_row": 2, "price_per_hour": 3.6, "currency": "EUR"}
    warm = {"epochs": 1, "learning_rate": 1e-3, "batch_size": 2, "reference_field": None}
    hyper = {"max_steps": 10, "batch_size": 4, "group_size": 5, "eval_interval": 3}
    spec = spec_of(dry_run=plan, warm_start=warm, hyperparameters={**hyper, "eval_samples": 6})
    report = report_of(spec, group(0.0, 1.0), validation_rows=20)
    estimate = report["estimate"]
    # Three times all rows (base, warm start, end) and after steps 3, 6 and 9 six of them.
    assert estimate["plan"]["evaluation_completions"] == 3 * 20 + 3 * 6
    cost, seconds = estimate["cost"], estimate["seconds"]
    assert cost["low"] == pytest.approx(seconds["low"] / 1000)
    assert (cost["currency"], cost["price_per_hour"]) == ("EUR", 3.6)
    assert estimate["made_of"][-1].startswith("The warm start is not in it;")


def test_the_verdict_leads_with_the_worst(spec_of: Callable[..., TrainSpec]) -> None:
    good = report_of(spec_of(), group(0.0, 1.0))["verdict"]
    assert (good["level"], good["advice"]) == ("good", [])
    cut = report_of(spec_of(name="cut"), [*group(0.0, 1.0, 1.0), rollout(0.0, truncated=True)])[
        "verdict"
    ]
    assert cut["level"] == "warn"
    assert cut["message"].startswith("25% of the completions were cut at max_completion_tokens=8.")
    assert any("Raise max_completion_tokens" in text for text in cut["advice"])
    bad = report_of(spec_of(name="bad"), *[group(0.0, 0.0)] * 20)["verdict"]
    assert bad["level"] == "bad"
    assert bad["message"].startswith("20 of 20 groups (100%) have no spread")


@pytest.mark.parametrize(
    ("kind", "does"),
    [
        ("python_grader_runtime_error", "Mend grader 'part'"),
        ("invalid_variable_error", "Mend the rows"),
        ("sample_parse_error", "invalid_grade"),
        ("model_grader_server_error", "the operator"),
    ],
)
def test_failures_come_with_what_to_do(
    spec_of: Callable[..., TrainSpec], kind: str, does: str
) -> None:
    verdict = report_of(spec_of(), group(0.0, 1.0, Failure(kind, "so", "part")))["verdict"]
    assert verdict["level"] == "bad"
    (advice,) = verdict["advice"]
    assert does in advice


@pytest.mark.parametrize(
    ("seconds", "rate", "warns"), [([8.0], "0.25", True), ([8.0, 1.0], "2", False)]
)
def test_an_estimate_that_holds_the_warm_up_says_so(
    spec_of: Callable[..., TrainSpec], seconds: list[float], rate: str, warns: bool
) -> None:
    parts = [(group(0.0, 1.0), each) for each in seconds]
    rates = Rates.of(parts, update_tokens_per_s=1.0)
    groups = [part for part, _ in parts]
    report = make_report(spec_of(), groups, rates, rows_in_file=9, validation_rows=0)
    made_of = report["estimate"]["made_of"]
    assert f"at the measured {rate} a second" in made_of[0]
    assert any("warm up" in text for text in made_of) == warns

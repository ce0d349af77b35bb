"""The watch as its loop sees it: what it says once, and what a resume carries over."""

import json
from typing import Any

import pytest

from graders.outcome import Failure, Score
from tests.trainer.hyperparameters import LIMITS
from tests.trainer.rollouts import group, rollout
from trainer.errors import EntropyCollapse
from trainer.sampling import Rollout
from trainer.spec import LimitsSpec
from trainer.watch.finding import Finding
from trainer.watch.watch import Watch


def watch(said: list[Finding] | None = None, **limits: Any) -> Watch:
    say = [].append if said is None else said.append
    return Watch(LimitsSpec(**{**LIMITS, **limits}), say)


def data(**changes: Any) -> dict[str, Any]:
    """What the watch reads of a step's metrics."""
    return {
        "groups_without_spread": 0,
        "trained_tokens": 10,
        "entropy": 1.0,
        "kl_to_reference": None,
        "train_solved_share": 0.5,
        "train_mean_reward": 0.5,
        "truncated_share": 0.0,
        "abstentions": 0,
        **changes,
    }


def step(index: int) -> list[list[Rollout]]:
    """Two groups whose parts move with the step, as ``form`` does and ``exact`` does not."""

    def one(row: int, place: int) -> Rollout:
        form = min(1.0, 0.1 * index) if place else 0.0
        exact = 0.05 * ((index + place) % 2)
        return rollout(
            Score(form + exact, {"form": form, "exact": exact}), row=row, tokens=4 + place
        )

    return [[one(row, place) for place in range(4)] for row in range(2)]


def test_the_evaluation_at_an_early_end_is_no_second_validation() -> None:
    said: list[Finding] = []
    made = watch(said)
    made.validated(0, [0.0] * 10, monitor=[0.5] * 10)
    for _ in range(2):
        made.validated(4, [1.0] * 10, monitor=[0.5] * 10)
    assert not said
    made.validated(8, [1.0] * 10, monitor=[0.5] * 10)
    assert [f.code for f in said] == ["monitor_stays_flat"]


def test_each_warning_is_given_once_also_after_a_resume() -> None:
    said: list[Finding] = []
    made = watch(said)
    made.tell(Finding("monitor_fails", "It is away."))
    resumed = watch(said)
    resumed.begin(json.loads(json.dumps(made.saved())))
    resumed.tell(Finding("monitor_fails", "It is away."))
    assert len(said) == 1


def test_a_stop_stays_also_for_a_resumed_run() -> None:
    made = watch(plateau_window=3)
    for at in (0, 10, 20):
        made.validated(at, [0.5])
    stop = made.before_step("rl")
    assert stop is not None and stop.reason == "plateau"
    resumed = watch(plateau_window=3)
    resumed.begin(json.loads(json.dumps(made.saved())))
    assert resumed.before_step("rl") == stop


def test_resumed_is_as_uninterrupted() -> None:
    whole, said = watch(said_whole := []), said_whole
    parts_said: list[Finding] = []
    parts = watch(parts_said)
    for index in range(1, 16):
        for made in (whole, parts):
            made.reinforced(index, step(index), data())
            made.validated(index, [0.1 * index, 0.2])
        kept = json.loads(json.dumps(parts.saved()))
        parts = watch(parts_said)
        parts.begin(kept)
    assert [f.code for f in said] == ["one_sub_score_gains"]
    assert parts_said == said
    mine, theirs = whole.saved(), parts.saved()
    assert mine.pop("spent").keys() == theirs.pop("spent").keys()
    assert mine == theirs


def test_a_warning_is_said_once() -> None:
    said: list[Finding] = []
    made = watch(said)
    for index in range(1, 4):
        made.reinforced(index, [group(0.0, 1.0)], data(kl_to_reference=0.9))
    assert [f.code for f in said] == ["kl_is_high"]


def test_steps_without_an_update_measure_nothing() -> None:
    made = watch(min_entropy=0.1)
    for index in range(1, 9):
        made.reinforced(index, [group(1.0, 1.0)], data(trained_tokens=0, entropy=0.0))
    assert not made.breached
    with pytest.raises(EntropyCollapse):
        for index in range(9, 12):
            made.reinforced(index, [group(0.0, 1.0)], data(entropy=0.0))


def test_completions_without_a_score_or_an_end_take_no_part() -> None:
    made = watch()
    ungraded = Failure("python_grader_runtime_error", "d", grader="g")
    made.reinforced(1, [[rollout(ungraded), rollout(1.0, truncated=True)]], data())
    assert made.saved()["gap"]["train"] == [
        {"count": 0, "sums": [], "products": [], "highest": [], "lowest": []}
    ]

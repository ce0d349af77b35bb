"""Budgets hold over attempts, and warn in time."""

from typing import Any

import pytest

from tests.trainer.hyperparameters import LIMITS
from trainer.spec import LimitsSpec
from trainer.watch.budget import Budget, Spent
from trainer.watch.finding import Finding


class Clock:
    """Seconds that a test moves on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def budget(
    said: list[Finding] | None = None, spent: Spent | None = None, **limits: Any
) -> tuple[Budget, Clock]:
    clock = Clock()
    say = [].append if said is None else said.append
    made = Budget(LimitsSpec(**{**LIMITS, **limits}), spent or Spent(), say, clock=clock)
    return made, clock


def steps_until_stop(made: Budget, clock: Clock, seconds: list[float], tokens: int) -> int:
    """Steps that are taken before a stop, each as long as the next of ``seconds``."""
    for count, duration in enumerate(seconds):
        if made.before_step("rl"):
            return count
        clock.now += duration
        made.count("rl", tokens)
    return len(seconds)


def test_without_limits_nothing_stops() -> None:
    made, clock = budget()
    assert steps_until_stop(made, clock, [1e6] * 5, 10**9) == 5
    assert made.spent.seconds == 5e6 and made.spent.tokens == 5 * 10**9


def test_a_step_that_would_not_fit_is_not_begun() -> None:
    made, clock = budget(max_train_seconds=100)
    assert steps_until_stop(made, clock, [30.0] * 9, 1) == 3
    stop = made.before_step("rl")
    assert stop is not None and stop.reason == "max_train_seconds"
    assert stop.data == {"limit": 100, "used": 90.0, "next_step": 30.0}
    assert "max_train_seconds=100, 90 are used" in stop.message


def test_the_longest_of_the_last_steps_counts() -> None:
    made, clock = budget(max_train_seconds=100)
    assert steps_until_stop(made, clock, [10, 35, 10, 10, 10], 1) == 4


def test_another_phase_is_judged_by_its_own_steps() -> None:
    made, clock = budget(max_train_seconds=100)
    assert made.before_step("warm_start") is None
    clock.now += 60
    assert made.before_step("rl") is None


def test_tokens_never_pass_their_limit_where_steps_are_alike() -> None:
    made, clock = budget(max_tokens=1000)
    assert steps_until_stop(made, clock, [1.0] * 9, 300) == 3
    assert made.spent.tokens == 900


def test_earlier_attempts_count() -> None:
    made, clock = budget(spent=Spent(seconds=95.0, tokens=7), max_train_seconds=100)
    assert made.before_step("rl") is None
    clock.now += 5
    assert made.before_step("rl") is not None
    assert made.spent.seconds == 100.0


def test_a_resumed_run_knows_how_long_steps_take() -> None:
    made, clock = budget(max_train_seconds=100)
    assert steps_until_stop(made, clock, [40.0, 40.0], 1) == 2
    assert made.before_step("rl") is not None
    resumed, _ = budget(spent=made.spent, max_train_seconds=100)
    assert resumed.before_step("rl") is not None


def test_attempts_that_left_no_checkpoint_count() -> None:
    made, clock = budget(spent=Spent(seconds=10.0), max_train_seconds=100, seconds_before=95.0)
    assert made.before_step("rl") is None
    clock.now += 5
    assert made.before_step("rl") is not None


def test_each_share_is_told_once_also_after_a_resume() -> None:
    said: list[Finding] = []
    made, _clock = budget(said, max_tokens=100)
    for _ in range(4):
        made.count("rl", 20)
    assert [f.data["share"] for f in said] == [0.6, 0.8]
    resumed, _ = budget(said, spent=made.spent, max_tokens=100)
    resumed.count("rl", 10)
    assert len(said) == 2
    resumed.count("rl", 20)
    assert said[-1].data == {"budget": "max_tokens", "limit": 100, "used": 110, "share": 1.1}
    assert said[-1].message == "110% of max_tokens is used: 110 of 100."


@pytest.mark.parametrize("tokens", [60, 100])
def test_only_the_highest_share_passed_is_told(tokens: int) -> None:
    said: list[Finding] = []
    made, _ = budget(said, max_tokens=100)
    made.count("rl", tokens)
    assert [f.data["share"] for f in said] == [tokens / 100]

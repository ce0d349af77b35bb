"""The look at the first groups: what it costs, and when it refuses."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from graders.outcome import Failure
from tests.trainer.rollouts import group
from trainer.errors import GraderFailures
from trainer.reinforcement.probe import Probe, probe
from trainer.reinforcement.rollouts import Sampled
from trainer.sampling import Rollout
from trainer.spec import TrainSpec

GROUP = 2
DULL, LIVELY, SOLVED = (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)


@pytest.fixture
def spec_of(make_job: Callable[..., Any]) -> Callable[..., TrainSpec]:
    """Make the spec of a job with groups of two."""

    def make(check: str = "refuse", **hyperparameters: Any) -> TrainSpec:
        values = {"group_size": GROUP, "batch_size": 8, "max_steps": 100, **hyperparameters}
        return TrainSpec.load(make_job(spread_check=check, hyperparameters=values))

    return make


class Steps:
    """Steps whose groups have the given scores; the last one repeats."""

    def __init__(self, spec: TrainSpec, *steps: Sequence[Sequence[Any]]) -> None:
        self._batch, self._steps = spec.reinforcement.hyperparameters.batch_size, steps
        self.asked: list[int] = []

    def __call__(self, step: int) -> Sampled:
        self.asked.append(step)
        scores = self._steps[min(step, len(self._steps) - 1)]
        rollouts: list[Rollout] = []
        for index in range(self._batch):
            rollouts += group(*scores[index % len(scores)], row=index)
        return Sampled(rollouts, 1.0, weights=0)


def look(spec: TrainSpec, *steps: Sequence[Sequence[Any]]) -> tuple[Probe, list[int]]:
    made = Steps(spec, *steps)
    return probe(spec, made), made.asked


def test_groups_with_spread_cost_no_further_sample(spec_of: Callable[..., TrainSpec]) -> None:
    found, asked = look(spec_of(), [LIVELY, LIVELY, *[DULL] * 6])
    assert asked == [0]
    assert not found.refused
    assert found.spread.total == 8
    assert len(found.first.rollouts) == 8 * GROUP


def test_hopeless_groups_are_refused_after_32(spec_of: Callable[..., TrainSpec]) -> None:
    found, asked = look(spec_of(), [DULL])
    assert asked == [0, 1, 2, 3]
    assert found.refused
    end = found.refusal(64)
    assert (end.reason, end.exit_code) == ("no_spread", 10)
    assert end.message.startswith(
        "Stopped before the first step: 32 of 32 groups (100%) have no spread of scores"
    )
    assert "warm_start" in end.message
    assert "method.reinforcement.allow_no_spread" in end.message
    assert len(end.examples) == 5


@pytest.mark.parametrize(("lively", "refused"), [(1, True), (2, False)])
def test_one_group_of_32_is_not_enough_and_two_are(
    spec_of: Callable[..., TrainSpec], lively: int, refused: bool
) -> None:
    later = [*[LIVELY] * lively, *[DULL] * (8 - lively)]
    found, asked = look(spec_of(), [DULL], [DULL], later, [DULL])
    assert found.refused == refused
    assert asked == ([0, 1, 2, 3] if refused else [0, 1, 2])


def test_rows_that_are_always_solved_are_refused_too(spec_of: Callable[..., TrainSpec]) -> None:
    found, _ = look(spec_of(), [SOLVED])
    assert found.refused
    assert "harder rows" in found.refusal(64).message


def test_a_short_job_is_only_warned(spec_of: Callable[..., TrainSpec]) -> None:
    found, asked = look(spec_of(max_steps=3), [DULL])
    assert asked == [0, 1, 2]
    assert not found.refused
    assert found.spread.level == "bad"


def test_one_that_is_told_to_go_on_samples_nothing_more(
    spec_of: Callable[..., TrainSpec],
) -> None:
    found, asked = look(spec_of("warn"), [DULL])
    assert asked == [0]
    assert not found.refused


def test_failures_are_no_matter_of_spread(spec_of: Callable[..., TrainSpec]) -> None:
    failed = Failure("sample_parse_error", "not JSON", "g")
    with pytest.raises(GraderFailures, match="16 of 16 completions could not be graded"):
        look(spec_of(), [(failed, failed)])

"""Sampling ahead: in order, bounded, and in checkpoints to the last bit."""

import json
import threading

import pytest

from graders.outcome import Abstain, Failure, Note, Score
from graders.trace import Trace, Usage
from trainer.data import PromptRow
from trainer.errors import GraderFailures
from trainer.reinforcement.ahead import Ahead
from trainer.reinforcement.rollouts import Sampled
from trainer.rollout.base import Completion
from trainer.sampling import Rollout

ROWS = [PromptRow(i, [i, 1], [{"role": "user", "content": str(i)}], {"i": i}) for i in range(3)]


class Recorder:
    """Samples nothing, and keeps which step was asked for by which thread."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, bool]] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, step: int) -> Sampled:
        beside = threading.current_thread() is not threading.main_thread()
        self.asked.append((step, beside))
        assert self.may_go_on.wait(timeout=30)
        return Sampled([], 0.0, step)


def test_without_staleness_each_step_is_sampled_when_it_is_asked_for() -> None:
    sample = Recorder()
    ahead = Ahead(sample, staleness=0, steps=3)
    for step in range(3):
        assert ahead.take(step).weights == step
        ahead.begin(step + 1)
        assert ahead.finish() == 0.0
    assert sample.asked == [(0, False), (1, False), (2, False)]
    ahead.close()


def test_with_staleness_the_next_step_is_sampled_beside_the_update() -> None:
    sample = Recorder()
    ahead = Ahead(sample, staleness=1, steps=3)
    ahead.take(0)
    sample.may_go_on.clear()
    ahead.begin(1)  # does not wait
    sample.may_go_on.set()
    assert ahead.finish() > 0.0
    assert ahead.take(1).weights == 1
    ahead.begin(2)
    ahead.finish()
    ahead.take(2)
    ahead.begin(3)  # there is no such step
    assert ahead.finish() == 0.0
    assert sample.asked == [(0, False), (1, True), (2, True)]
    ahead.close()


def test_what_sampling_raises_is_raised_where_it_is_waited_for() -> None:
    def fail(step: int) -> Sampled:
        raise GraderFailures(f"step {step}")

    ahead = Ahead(fail, staleness=1, steps=3)
    ahead.begin(1)
    with pytest.raises(GraderFailures, match="step 1"):
        ahead.finish()
    ahead.close()


def test_closing_waits_for_what_has_begun() -> None:
    sample = Recorder()
    ahead = Ahead(sample, staleness=1, steps=3)
    sample.may_go_on.clear()
    ahead.begin(1)
    threading.Timer(0.05, sample.may_go_on.set).start()
    ahead.close()
    assert sample.asked == [(1, True)]
    assert sample.may_go_on.is_set()


def test_what_was_sampled_ahead_survives_a_checkpoint() -> None:
    outcomes = [
        Score(1 / 3, {"a": 0.1}, (Note("g", "sample_parse_error", "d"),)),
        Abstain("no idea"),
        Failure("python_grader_timeout", "slow", "code", {"a": 1.0}),
    ]
    trace = Trace("g", "score_model", 0.3, model="m", usage=Usage(3, 2, 1), score=1 / 3)
    rollouts = [
        Rollout(
            ROWS[i], Completion([i, 7], [-1 / 3, -1e-17], i == 1), f"é{i}\n", outcome, 0.1, (trace,)
        )
        for i, outcome in enumerate(outcomes)
    ]
    ahead = Ahead(lambda _step: Sampled(rollouts, 0.5, 4, 2), staleness=1, steps=9)
    assert ahead.state() is None
    ahead.begin(5)
    ahead.finish()
    state = json.loads(json.dumps(ahead.state()))
    ahead.close()

    def never(step: int) -> Sampled:
        raise AssertionError(step)

    again = Ahead(never, staleness=1, steps=9)
    again.restore(state, ROWS)
    assert again.state() == state
    assert again.take(5) == Sampled(rollouts, 0.5, 4, 2)
    again.close()

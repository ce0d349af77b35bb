"""Which rows a step samples, and with which draws."""

from collections.abc import Iterator, Sequence
from typing import Any

from graders.client import Reply
from graders.outcome import Score
from tests.trainer.reinforcement.learners import hyperparameters
from trainer.data import PromptRow, batch_for_step
from trainer.reinforcement.rollouts import draw_seed, sample_step
from trainer.rollout.base import Completion, Sampling
from trainer.sampling import Collector
from trainer.spread import groups_of

ROWS = [PromptRow(i, [i], [], {"row": i}) for i in range(6)]


class Sampler:
    """Writes completions of one token; its grader gives a group a spread or not, by row and draw.

    Args:
        dull: rows whose completions all get the same score.
        cut: rows whose completions are all cut.
    """

    def __init__(self, dull: Sequence[int] = (), cut: Sequence[int] = ()) -> None:
        self.dull, self.cut = set(dull), set(cut)
        self.calls: list[tuple[list[int], Sampling]] = []
        self._asked: list[tuple[int, int]] = []

    def generate(
        self, prompts: list[list[int]], sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        self.calls.append(([prompt[0] for prompt in prompts], sampling))
        for index, (row,) in enumerate(prompts):
            yield index, Completion([1], [-1.0], truncated=row in self.cut)

    def load_weights(self, policy: Any) -> None:
        raise NotImplementedError

    def submit(self, id: int, _sample: Any, item: dict[str, Any], **_: Any) -> None:
        self._asked.append((id, item["row"]))

    def receive(self) -> Reply:
        id, row = self._asked.pop(0)
        return Reply(id, Score(0.0 if row in self.dull else float(id % 2)), 0.0)

    def decode(self, _ids: list[int], **_: Any) -> str:
        return "x"


def sampled_rows(sampler: Sampler, *, step: int = 0, **changes: Any) -> list[list[int]]:
    """The rows of each round of a step with two groups of two."""
    hp = hyperparameters(batch_size=2, group_size=2, **changes)
    collector = Collector(sampler, sampler, sampler, lambda _done, _total: None)
    before = len(sampler.calls)
    made = sample_step(collector, ROWS, hp, step=step, seed=5, weights=step)
    rounds = [rows[::2] for rows, _ in sampler.calls[before:]]
    assert made.rounds == len(rounds) and made.weights == step
    found = [group[0].row.index for group in groups_of(made.rollouts, 2)]
    assert found == [row for rows in rounds for row in rows]
    return rounds


def _first(step: int = 0) -> list[int]:
    return [row.index for row in batch_for_step(ROWS, step, 2, 5)]


def test_groups_with_spread_are_not_sampled_again() -> None:
    assert sampled_rows(Sampler(), resample_rounds=3) == [_first()]


def test_dull_groups_are_left_alone_unless_that_is_asked_for() -> None:
    assert sampled_rows(Sampler(range(6)), resample_rounds=0) == [_first()]


def test_as_many_rows_are_added_as_groups_are_dull() -> None:
    dull, good = _first()
    rounds = sampled_rows(Sampler([dull]), resample_rounds=3)
    assert rounds[0] == [dull, good]
    assert len(rounds) == 2 and len(rounds[1]) == 1
    assert rounds[1][0] not in (dull, good)


def test_what_takes_no_part_is_no_spread() -> None:
    cut, _ = _first()
    assert len(sampled_rows(Sampler(cut=[cut]), resample_rounds=3)) == 2
    counted = {"resample_rounds": 3, "mask_truncated": False}
    assert len(sampled_rows(Sampler(cut=[cut]), **counted)) == 1


def test_draws_are_those_that_the_job_asks_for() -> None:
    sampler = Sampler()
    sampled_rows(sampler, temperature=0.7, max_completion_tokens=5)
    ((_, sampling),) = sampler.calls
    assert (sampling.temperature, sampling.max_tokens) == (0.7, 5)


def test_rounds_end_and_rows_come_again_when_all_were_tried() -> None:
    rounds = sampled_rows(Sampler(range(6)), resample_rounds=4)
    assert len(rounds) == 5
    flat = [row for rows in rounds for row in rows]
    assert set(flat[:6]) == set(range(6))
    assert len(flat) == 10


def test_every_round_of_every_step_has_draws_of_its_own() -> None:
    sampler = Sampler(range(6))
    for step in range(3):
        sampled_rows(sampler, step=step, resample_rounds=2)
    seeds = [sampling.seed for _, sampling in sampler.calls]
    assert len(set(seeds)) == len(seeds) == 9
    assert seeds[3] == draw_seed(5, 1)
    again = Sampler(range(6))
    assert sampled_rows(again, step=2, resample_rounds=2) == [
        rows[::2] for rows, _ in sampler.calls[6:]
    ]
    assert [sampling.seed for _, sampling in again.calls] == seeds[6:]

"""Signs of trouble in the run itself."""

import random

from tests.trainer.watch.signs.streams import first_of
from trainer.watch.finding import Finding
from trainer.watch.signs.stability import Stability, far


def rewards(chances: list[float]) -> Finding | None:
    sign, draw = Stability(), random.Random(0)
    steps = [[float(draw.random() < chance) for _ in range(64)] for chance in chances]
    return first_of([sign.reward(i, scores) for i, scores in enumerate(steps, start=1)])


def test_a_reward_that_falls_is_seen() -> None:
    found = rewards([0.5] * 6 + [0.9] * 6 + [0.4] * 6)
    assert found is not None and found.code == "reward_falls"
    assert found.data["best_step"] in range(7, 13)


def test_noise_is_no_fall() -> None:
    assert rewards([0.5] * 40) is None
    assert rewards([0.5] * 6 + [0.6] * 6 + [0.55] * 6) is None


def test_alike_answers_that_are_wrong_are_seen() -> None:
    sign = Stability()
    curve = [1.0, 1.0, 1.0, 0.5, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05]
    found = first_of([sign.alike(entropy, solved_share=0.1) for entropy in curve])
    assert found is not None and found.code == "entropy_falls"
    assert found.data["entropy_first"] == 1.0


def test_alike_answers_that_are_right_are_no_trouble() -> None:
    sign = Stability()
    assert first_of([sign.alike(e, solved_share=0.9) for e in [1.0] * 3 + [0.01] * 9]) is None


def test_nothing_left_to_learn_is_seen_after_some_steps() -> None:
    sign = Stability()
    told = [sign.left(without_spread=n, groups=8) is not None for n in [8] * 5 + [7] + [8] * 11]
    assert told == [False] * 15 + [True] * 2


def test_a_far_policy_is_seen() -> None:
    assert far(0.2) is None
    found = far(0.7)
    assert found is not None and found.data == {"kl": 0.7}

"""What each token counts."""

import pytest

from tests.trainer.objectives.objectives import ALGORITHMS, objective
from trainer.objectives.weights import token_weights

#: The last completion is masked: it has no weight, and is a completion all the same.
LENGTHS = [3, 5, 10, 0]


@pytest.mark.parametrize(
    ("algorithm", "want"),
    [
        ("grpo", [1 / 12, 1 / 20, 1 / 40, 0.0]),
        ("dr_grpo", [1 / 64, 1 / 64, 1 / 64, 0.0]),
        ("dapo", [1 / 18, 1 / 18, 1 / 18, 0.0]),
    ],
)
def test_weights_are_those_of_the_mean_that_the_objective_takes(
    algorithm: str, want: list[float]
) -> None:
    assert token_weights(LENGTHS, objective(algorithm), 16) == pytest.approx(want)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_a_token_there_is_no_weight(algorithm: str) -> None:
    assert token_weights([0, 0], objective(algorithm), 16) == [0.0, 0.0]
    assert token_weights([], objective(algorithm), 16) == []

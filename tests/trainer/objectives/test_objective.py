"""What an algorithm's name stands for is what the documentation says."""

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.trainer.objectives.objectives import ALGORITHMS, objective
from trainer.spec import Hyperparameters

DOCS = (Path(__file__).parents[3] / "docs/algorithms.md").read_text()


def test_the_documentation_has_the_choices_of_every_algorithm() -> None:
    rows = re.findall(r"^\| `([a-z_+]+)` \| (.+) \| (.+) \| (.+) \| (.+) \|$", DOCS, re.MULTILINE)
    shown = {name: tuple(cell.replace(" ", "_") for cell in cells) for name, *cells in rows}
    assert shown.pop("algorithm") == ("advantage", "ratio", "surrogate", "mean_over")
    chosen = {name: objective(name) for name in ALGORITHMS}
    assert shown == {
        name: (each.advantage, each.ratio, each.surrogate, each.aggregation)
        for name, each in chosen.items()
    }
    assert list(shown) == list(get_args(Hyperparameters.model_fields["algorithm"].annotation))


def test_the_documentation_has_every_correction() -> None:
    names = get_args(Hyperparameters.model_fields["sampler_correction"].annotation)
    section = DOCS.split("## The sampler's numbers")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", "".join(first_cells))) == {*names, "sampler_correction"}


@pytest.mark.parametrize("placement", ["loss", "reward"])
def test_a_penalty_stands_in_one_place_and_only_with_a_coefficient(placement: str) -> None:
    chosen = objective("grpo", kl_coefficient=0.1, kl_placement=placement)
    assert (chosen.kl_in_loss, chosen.kl_in_reward) == (placement == "loss", placement == "reward")
    assert chosen.needs_reference
    without = objective("grpo", kl_coefficient=0.0, kl_placement=placement)
    assert not (without.kl_in_loss or without.kl_in_reward or without.needs_reference)


def test_only_ppo_needs_a_critic() -> None:
    assert [name for name in ALGORITHMS if objective(name).has_critic] == ["ppo"]

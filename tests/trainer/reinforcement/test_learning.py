"""Every algorithm raises the reward of a small model, beside the sampler or ahead of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.reports import reports_of
from trainer import proof

ALGORITHMS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "dr_grpo": {},
    "dapo": {"clip_high": 0.28, "resample_rounds": 1},
    "gspo": {"clip_low": 3e-4, "clip_high": 4e-4},
    "cispo": {},
    "sapo": {},
    "rloo": {},
    "reinforce++": {"learning_rate": 1e-3},
    "ppo": {"gae_lambda": 0.95},
}
MORE: dict[str, dict[str, Any]] = {
    "ahead": {"max_staleness": 1, "learning_rate": 1e-3},
    "several updates": {"rollout_epochs": 2, "minibatches": 2},
    "held by kl": {"kl_coefficient": 0.01},
    "held by kl in the reward": {
        "algorithm": "rloo",
        "kl_coefficient": 0.01,
        "kl_placement": "reward",
        "kl_estimator": "k1",
    },
}
CASES = {**{name: {**v, "algorithm": name} for name, v in ALGORITHMS.items()}, **MORE}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_reward_rises(
    make_job: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(proof, "prove", lambda *_, **__: {"differs_from_base": True})
    data = {"train": "data/train.jsonl", "validation": None, "warm_start": "data/warm_start.jsonl"}
    warm = {"epochs": 30, "learning_rate": 1e-2, "batch_size": 4, "reference_field": None}
    size = {"max_steps": 16, "batch_size": 8, "group_size": 8, "learning_rate": 3e-3}
    job = make_job(data=data, warm_start=warm, hyperparameters={**size, **CASES[name]})
    steps = [r["data"] for r in reports_of(job) if r["type"] == "metrics" and r["phase"] == "rl"]
    rewards = [step["train_mean_reward"] for step in steps]
    assert sum(rewards[-3:]) > sum(rewards[:3]) + 0.3, rewards

"""Rollouts with fixed log-probabilities, and what TRL calls the choices that ours make."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from tests.trainer.hyperparameters import HYPERPARAMETERS
from trainer.spec import Hyperparameters

MAX_LENGTH = 16
GROUP_SIZE = 3

#: For each algorithm: TRL's trainer, its settings, and the values that our algorithm takes for it.
ALGORITHMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "grpo": ("grpo", {"loss_type": "grpo"}, {}),
    "dr_grpo": ("grpo", {"loss_type": "dr_grpo", "scale_rewards": "none"}, {}),
    "dapo": ("grpo", {"loss_type": "dapo"}, {"clip_high": 0.28}),
    "gspo": (
        "grpo",
        {"loss_type": "grpo", "level": "sequence"},
        {"clip_low": 0.03, "clip_high": 0.04},
    ),
    # TRL's `epsilon_high` is the cap itself here.
    "cispo": ("grpo", {"loss_type": "cispo", "epsilon_high": 1.1}, {"cispo_weight_cap": 1.1}),
    "sapo": ("grpo", {"loss_type": "sapo"}, {}),
    "rloo": ("rloo", {}, {"kl_placement": "reward", "kl_estimator": "k1"}),
}

#: Our corrections that TRL has, with bounds that bite on some of the rollouts.
CORRECTIONS: list[tuple[str, float, float]] = [
    ("none", 0.0, 2.0),
    ("token_truncate", 0.0, 1.1),
    ("token_truncate", 0.9, 1.1),
    ("sequence_truncate", 0.0, 1.2),
    ("token_mask", 0.0, 1.1),
    ("icepop", 0.9, 1.2),
    ("sequence_mask", 0.0, 1.2),
    ("sequence_mask", 0.8, 1.2),
]


def cases_of(algorithm: str) -> list[dict[str, Any]]:
    """Every combination of choices that TRL has too, on rollouts of their own."""
    return [
        _case(algorithm, seed, **choices) for seed, choices in enumerate(_combinations(algorithm))
    ]


def _combinations(algorithm: str) -> Iterator[dict[str, Any]]:
    # RLOO of TRL has neither corrections nor a cap for negative advantages, nor another KL.
    grpo = ALGORITHMS[algorithm][0] == "grpo"
    clips = algorithm not in ("cispo", "sapo", "rloo")
    names = ("on_policy", "mask_truncated", "kl", "correction", "dual_clip")
    for values in itertools.product(
        (True, False),
        (True, False),
        ((0.0, True), (0.05, True), (0.05, False)) if grpo else ((0.0, True), (0.05, True)),
        CORRECTIONS if grpo else CORRECTIONS[:1],
        (0.0, 1.4) if clips else (0.0,),
    ):
        yield dict(zip(names, values, strict=True))


def _case(
    algorithm: str,
    seed: int,
    *,
    on_policy: bool,
    mask_truncated: bool,
    kl: tuple[float, bool],
    correction: tuple[str, float, float],
    dual_clip: float,
) -> dict[str, Any]:
    trainer, theirs, own = ALGORITHMS[algorithm]
    kind, low, high = correction
    kl_coefficient, weighted = kl
    ours = {
        **HYPERPARAMETERS,
        **own,
        "algorithm": algorithm,
        "group_size": GROUP_SIZE,
        "max_completion_tokens": MAX_LENGTH,
        "mask_truncated": mask_truncated,
        "kl_coefficient": kl_coefficient,
        "dual_clip": dual_clip,
        "sampler_correction": kind,
        "correction_low": low,
        "correction_high": high,
    }
    hp = Hyperparameters(**ours)
    return {
        "trainer": trainer,
        "hyperparameters": ours,
        "group_size": GROUP_SIZE,
        "on_policy": on_policy,
        "config": {**_config(hp, weighted), **theirs},
        "completions": list(_completions(random.Random(seed), on_policy, algorithm)),
    }


def _config(hp: Hyperparameters, weighted: bool) -> dict[str, Any]:
    """TRL's settings for ours, as far as they mean the same in all of its losses."""
    masks = hp.sampler_correction == "icepop"
    corrected = hp.sampler_correction != "none"
    return {
        "loss_type": None,
        "level": "token",
        "scale_rewards": "group",
        "epsilon": hp.clip_low,
        "epsilon_high": hp.clip_high,
        "delta": hp.dual_clip or None,
        "beta": hp.kl_coefficient,
        "weighted_kl": weighted,
        "mask_truncated": hp.mask_truncated,
        "max_length": hp.max_completion_tokens,
        "sapo_positive": hp.sapo_temperature_positive,
        "sapo_negative": hp.sapo_temperature_negative,
        "vllm_mode": ("token_mask" if masks else hp.sampler_correction) if corrected else None,
        "vllm_low": hp.correction_low or None,
        "vllm_high": hp.correction_high,
    }


def _completions(draw: random.Random, on_policy: bool, algorithm: str) -> Iterator[dict[str, Any]]:
    """Three groups with ragged lengths: one with an ungraded completion, one without spread."""
    scores = [0.2, 1.0, 0.7, None, 1.0, -0.5, 0.5, 0.5, 0.5]
    truncated = [False, True, False, False, False, True, False, True, False]
    for score, cut in zip(scores, truncated, strict=True):
        old = [-3.0 * draw.random() for _ in range(draw.randint(1, MAX_LENGTH))]
        moved = [value + draw.gauss(0.0, 0.2) for value in old]
        yield {
            # A masked completion adds a constant to TRL's RLOO loss unless its advantage is 0.
            "score": None if cut and algorithm == "rloo" else score,
            "truncated": cut,
            "logp": old if on_policy else moved,
            "old": old,
            # TRL keeps these in single precision.
            "sampler": [_single(value + draw.gauss(0.0, 0.1)) for value in old],
            "reference": [value + draw.gauss(0.0, 0.3) for value in old],
        }


def _single(value: float) -> float:
    """The nearest number that survives single precision unchanged."""
    return round(value * 2**16) / 2**16

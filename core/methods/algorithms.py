"""What `"auto"` means for each algorithm of reinforcement: the bounds and gates of its paper.

`DEFAULTS` holds for all; an algorithm's own values stand above it. What costs further passes is off
in all of them, also where a paper has it: the penalty for distance and several updates per step.
Sources: GRPO arXiv:2402.03300, Dr. GRPO 2503.20783, DAPO 2503.14476, GSPO 2507.18071, CISPO
2506.13585, SAPO 2511.20347, RLOO 2402.14740, REINFORCE++ 2501.03262, PPO 1707.06347.
"""

from typing import Any

DEFAULTS: dict[str, Any] = {
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dual_clip": 0.0,
    "cispo_weight_cap": 5.0,
    "sapo_temperature_positive": 1.0,
    "sapo_temperature_negative": 1.05,
    "kl_coefficient": 0.0,
    "kl_placement": "loss",
    "sampler_correction": "token_truncate",
    "overlong_buffer_tokens": 0,
    "overlong_penalty": 1.0,
    "resample_rounds": 0,
    "rollout_epochs": 1,
    "minibatches": 1,
    "max_staleness": 0,
    "discount": 1.0,
    "gae_lambda": 1.0,
    "value_clip": 0.2,
}

OF_ALGORITHM: dict[str, dict[str, Any]] = {
    "grpo": {},
    "dr_grpo": {},
    "dapo": {"clip_high": 0.28, "resample_rounds": 3},
    "gspo": {"clip_low": 3e-4, "clip_high": 4e-4},
    "cispo": {},
    "sapo": {},
    "rloo": {"kl_placement": "reward"},
    "reinforce++": {"kl_placement": "reward"},
    "ppo": {"kl_placement": "reward", "gae_lambda": 0.95},
}

#: Where each correction begins and ends: weights are cut at, or kept between, these.
CORRECTION_BOUNDS: dict[str, tuple[float, float]] = {
    "none": (0.0, 1.0),
    "token_truncate": (0.0, 2.0),
    "sequence_truncate": (0.0, 2.0),
    "token_mask": (0.0, 2.0),
    "sequence_mask": (0.0, 2.0),
    "icepop": (0.5, 5.0),
    "geometric_mask": (0.99, 1.01),
}

#: DAPO's buffer is a fifth of the longest completion.
OVERLONG_SHARE = 5


def fill(values: dict[str, Any]) -> None:
    """Set what is not set yet of the algorithm's values; needs ``algorithm``, the longest
    completion and the learning rate."""
    own = OF_ALGORITHM[values["algorithm"]]
    if values["algorithm"] == "dapo":
        own = {**own, "overlong_buffer_tokens": values["max_completion_tokens"] // OVERLONG_SHARE}
    for name, value in {**DEFAULTS, **own}.items():
        values.setdefault(name, value)
    values.setdefault("kl_estimator", "k1" if values["kl_placement"] == "reward" else "k3")
    low, high = CORRECTION_BOUNDS[values["sampler_correction"]]
    values.setdefault("correction_low", low)
    values.setdefault("correction_high", high)
    values.setdefault("critic_learning_rate", values["learning_rate"])


#: The algorithms that use a hyperparameter, where not all do.
_USED_BY: dict[str, frozenset[str]] = {
    "clip_low": frozenset(OF_ALGORITHM) - {"cispo", "sapo"},
    "clip_high": frozenset(OF_ALGORITHM) - {"cispo", "sapo"},
    "dual_clip": frozenset(OF_ALGORITHM) - {"cispo", "sapo"},
    "cispo_weight_cap": frozenset({"cispo"}),
    "sapo_temperature_positive": frozenset({"sapo"}),
    "sapo_temperature_negative": frozenset({"sapo"}),
    "discount": frozenset({"reinforce++", "ppo"}),
    "gae_lambda": frozenset({"ppo"}),
    "critic_learning_rate": frozenset({"ppo"}),
    "value_clip": frozenset({"ppo"}),
}
#: Hyperparameters that say how another one works, which is off at 0.
_DETAIL_OF = {
    "kl_estimator": "kl_coefficient",
    "kl_placement": "kl_coefficient",
    "overlong_penalty": "overlong_buffer_tokens",
}
#: Hyperparameters that bound how far updates move from the first one of a step.
_OF_LATER_UPDATES = (
    "clip_low",
    "clip_high",
    "dual_clip",
    "sapo_temperature_positive",
    "sapo_temperature_negative",
    "value_clip",
)
_OF_CORRECTIONS = ("correction_low", "correction_high")


def unused(values: dict[str, Any]) -> list[str]:
    """Return a sentence for each value that differs from "auto"'s, and has no effect.

    ``values`` are resolved; what "auto" left there has no effect either, which needs no word.
    """
    looked_at = {*_USED_BY, *_DETAIL_OF, *_OF_CORRECTIONS}
    automatic = {name: value for name, value in values.items() if name not in looked_at}
    fill(automatic)
    algorithm = values["algorithm"]
    why = {
        name: f"with algorithm {algorithm!r}; only {_listed(users)} uses it"
        for name, users in _USED_BY.items()
        if algorithm not in users
    }
    why |= {name: f"while {whole} is 0" for name, whole in _DETAIL_OF.items() if values[whole] == 0}
    if values["sampler_correction"] == "none":
        why |= dict.fromkeys(_OF_CORRECTIONS, "while sampler_correction is 'none'")
    if values["minibatches"] == values["rollout_epochs"] == 1:
        more = "with one update per step; raise minibatches or rollout_epochs for more"
        why |= {name: more for name in _OF_LATER_UPDATES if name not in why}
    return [
        f"{name} has no effect {reason}."
        for name, reason in why.items()
        if values[name] != automatic[name]
    ]


def _listed(names: frozenset[str]) -> str:
    return " or ".join(name for name in OF_ALGORITHM if name in names)

"""Values of a small job in tests."""

from typing import Any

#: GRPO on the tiny model.
HYPERPARAMETERS: dict[str, Any] = {
    "algorithm": "grpo",
    "batch_size": 4,
    "group_size": 4,
    "max_steps": 4,
    "learning_rate": 1e-3,
    "temperature": 1.0,
    "max_completion_tokens": 12,
    "eval_interval": 2,
    "eval_samples": 2,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dual_clip": 0.0,
    "cispo_weight_cap": 5.0,
    "sapo_temperature_positive": 1.0,
    "sapo_temperature_negative": 1.05,
    "kl_coefficient": 0.0,
    "kl_estimator": "k3",
    "kl_placement": "loss",
    "sampler_correction": "token_truncate",
    "correction_low": 0.0,
    "correction_high": 2.0,
    "mask_truncated": True,
    "overlong_buffer_tokens": 0,
    "overlong_penalty": 1.0,
    "resample_rounds": 0,
    "rollout_epochs": 1,
    "minibatches": 1,
    "max_staleness": 0,
    "discount": 1.0,
    "gae_lambda": 1.0,
    "critic_learning_rate": 1e-3,
    "value_clip": 0.2,
}

LIMITS: dict[str, Any] = {
    "max_train_seconds": None,
    "seconds_before": 0.0,
    "max_tokens": None,
    "plateau_window": 0,
    "min_entropy": 0.0,
    "max_kl": 0.0,
    "max_mismatch": 0.2,
}

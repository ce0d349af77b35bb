"""TRL's losses of rollouts with fixed log-probabilities; a script for the environment that has TRL.

TRL's own `_generate_and_score_completions` and `_compute_loss` run, from scores to the loss: only
the model, the sampler and the reward functions are replaced by what a case says. Cases come as
JSON on standard input (see `trl_cases.py`), answers go to standard output.
"""

import collections
import contextlib
import json
import os
import sys
import types
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The sampler is not needed here, and takes seconds to import.
sys.modules["vllm"] = None  # type: ignore[assignment]

import torch  # noqa: E402
from trl import GRPOTrainer, RLOOTrainer  # noqa: E402

EOS, PAD, WORD = 1, 0, 2


class OneProcess:
    """Stands in for `accelerate.Accelerator`."""

    num_processes = 1
    process_index = 0
    sync_gradients = True
    device = torch.device("cpu")

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def reduce(self, tensor: torch.Tensor, reduction: str) -> torch.Tensor:
        assert reduction == "sum"
        return tensor


def padded(case: dict[str, Any], name: str) -> torch.Tensor:
    rows = [torch.tensor(c[name], dtype=torch.float64) for c in case["completions"]]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Loss, gradients of all log-probabilities in a row, and advantages of one case."""
    logp = padded(case, "logp").requires_grad_()
    trainer = make_trainer(case, logp)
    rollouts = trainer._generate_and_score_completions(
        [{"prompt": [{"role": "user", "content": ""}]} for _ in case["completions"]]
    )
    trainer.sampling = False
    loss = trainer._compute_loss(trainer.model, rollouts)
    loss.backward()
    lengths = [len(c["logp"]) for c in case["completions"]]
    gradients = [x for row, n in zip(logp.grad, lengths, strict=True) for x in row[:n].tolist()]
    advantages = rollouts["advantages"].tolist()
    return {"loss": loss.item(), "gradients": gradients, "advantages": advantages}


def make_trainer(case: dict[str, Any], logp: torch.Tensor) -> Any:
    """A trainer of which only what the two methods read is there."""
    config, kind = case["config"], {"grpo": GRPOTrainer, "rloo": RLOOTrainer}[case["trainer"]]
    completions = case["completions"]
    trainer = object.__new__(kind)
    ids = [[WORD] * (len(c["logp"]) - 1) + [WORD if c["truncated"] else EOS] for c in completions]
    scores = [float("nan") if c["score"] is None else c["score"] for c in completions]
    policy = types.SimpleNamespace(training=True, is_gradient_checkpointing=False)
    reference = types.SimpleNamespace()
    old, reference_logp = padded(case, "old"), padded(case, "reference")
    sampler = [c["sampler"] for c in completions] if config["vllm_mode"] else None

    def generate(prompts: list[Any]) -> tuple[Any, ...]:
        words = [[WORD] for _ in prompts]
        if kind is RLOOTrainer:
            return words, ids, ids
        return words, ids, None, ids, sampler, {}, None, []

    def logps(model: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor, None]:
        policy_logp = old if trainer.sampling else logp
        found = reference_logp if model is reference else policy_logp
        return found, torch.zeros_like(found), None

    vars(trainer).update(
        accelerator=OneProcess(),
        model=policy,
        ref_model=reference,
        sampling=True,
        _generate=generate,
        _get_per_token_logps_and_entropies=logps,
        _calculate_rewards=lambda *_: torch.tensor(scores, dtype=torch.float64).unsqueeze(1),
        num_generations=case["group_size"],
        # Without a second pass over the rollouts, TRL takes the current policy for the old one.
        num_iterations=1 if case["on_policy"] else 2,
        current_gradient_accumulation_steps=1,
        use_vllm=config["vllm_mode"] is not None,
        **settings(config),
        **absent(),
    )
    return trainer


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """What a caller of TRL may choose, under the names that the trainers keep it under."""
    return {
        "loss_type": config["loss_type"],
        "importance_sampling_level": config["level"],
        "scale_rewards": config["scale_rewards"],
        "epsilon_low": config["epsilon"],
        "epsilon_high": config["epsilon_high"],
        "beta": config["beta"],
        "mask_truncated_completions": config["mask_truncated"],
        "max_completion_length": config["max_length"],
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": config["vllm_mode"],
        "vllm_importance_sampling_clip_min": config["vllm_low"],
        "vllm_importance_sampling_clip_max": config["vllm_high"],
        "args": types.SimpleNamespace(
            delta=config["delta"],
            use_bias_correction_kl=config["weighted_kl"],
            sapo_temperature_pos=config["sapo_positive"],
            sapo_temperature_neg=config["sapo_negative"],
            steps_per_generation=1,
            gradient_accumulation_steps=1,
            gradient_checkpointing_kwargs=None,
            per_device_train_batch_size=64,
            report_to=[],
        ),
    }


def absent() -> dict[str, Any]:
    """What plays no part: tools, images, environments, logs, further terms of the loss."""
    return {
        "_tokenizer": types.SimpleNamespace(pad_token_id=PAD),
        "eos_token_ids": [EOS],
        "pad_to_multiple_of": None,
        "environment_factories": None,
        "environments": None,
        "tools": [],
        "multi_objective_aggregation": "sum_then_normalize",
        "reward_weights": torch.ones(1, dtype=torch.float64),
        "reward_funcs": [None],
        "reward_func_names": ["score"],
        "reward_clip_range": None,
        "normalize_advantages": False,
        "off_policy_mask_threshold": None,
        "top_entropy_quantile": 1.0,
        "aux_loss_enabled": False,
        "_entropy_bonus_enabled": False,
        "log_multimodal": False,
        "_metrics": {"train": collections.defaultdict(list)},
        "_logs": {
            name: collections.defaultdict(list) if name in ("rewards", "extra") else []
            for name in ("prompt", "completion", "rewards", "advantages", "extra")
        },
        "_pending_extra_logs": {},
        "_pending_metrics": {},
    }


def main() -> None:
    torch.set_num_threads(1)
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answers = [answer(case) for case in cases]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()

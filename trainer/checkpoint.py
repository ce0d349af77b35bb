"""Checkpoints: a model that can be served, and all that a bit-exact resume needs.

``model/`` holds weights or adapter with tokenizer and chat template; ``state/`` the float32
masters, the optimiser's moments, and the progress. Random numbers need no state: every draw is
seeded by (job seed, step).
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from trainer.policy import Policy


@dataclass
class Progress:
    """How far a job is: everything about it that is not a tensor."""

    step: int = 0
    trained_tokens: int = 0
    stages: list[dict[str, Any]] = field(default_factory=list)


def write(directory: Path, policy: Policy, progress: Progress, reference: Policy | None) -> None:
    """Write a complete checkpoint into an empty ``directory``."""
    policy.save_model(directory / "model")
    state = directory / "state"
    state.mkdir(parents=True)
    save_file(_tensors(policy), state / "trainable.safetensors")
    if reference is not None:
        # The reference is frozen whole; what sets it apart is what the policy trains.
        names = dict(reference.model.named_parameters())
        kept = {name: names[name] for name in policy.trainable}
        save_file(_contiguous(kept), state / "reference.safetensors")
    (state / "progress.json").write_text(json.dumps(dataclasses.asdict(progress)), encoding="utf-8")


def has_state(directory: Path) -> bool:
    """Whether a directory holds a checkpoint to resume from."""
    return (directory / "state" / "progress.json").exists()


def read(directory: Path, policy: Policy) -> Progress:
    """Put a checkpoint's masters and moments into ``policy``; its optimiser must be started."""
    tensors = load_file(directory / "state" / "trainable.safetensors")
    with torch.no_grad():
        for name, master in policy.masters.items():
            master.copy_(tensors[f"master.{name}"])
    _load_moments(policy, tensors)
    policy.refresh()
    return Progress(**json.loads((directory / "state" / "progress.json").read_text()))


def read_reference(directory: Path, policy: Policy) -> Policy:
    """The frozen reference policy that a checkpoint was trained against."""
    reference = policy.reference()
    tensors = load_file(directory / "state" / "reference.safetensors")
    names = dict(reference.model.named_parameters())
    with torch.no_grad():
        for name, tensor in tensors.items():
            names[name].copy_(tensor)
    return reference


def _tensors(policy: Policy) -> dict[str, torch.Tensor]:
    tensors = {f"master.{n}": m.detach() for n, m in policy.masters.items()}
    if policy.optimizer is not None:
        for name, master in policy.masters.items():
            for key, value in policy.optimizer.state.get(master, {}).items():
                tensors[f"{key}.{name}"] = value
    return _contiguous(tensors)


def _load_moments(policy: Policy, tensors: dict[str, torch.Tensor]) -> None:
    if policy.optimizer is None:
        raise RuntimeError("start_optimizer() comes before a checkpoint is read")
    for name, master in policy.masters.items():
        keys = [k for k in ("step", "exp_avg", "exp_avg_sq") if f"{k}.{name}" in tensors]
        if keys:
            policy.optimizer.state[master] = {
                k: tensors[f"{k}.{name}"].to(master.device) for k in keys
            }


def _contiguous(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}

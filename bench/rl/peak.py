"""What the machine's matrix units give for the products of a model's layers, in bfloat16."""

import time

import torch
from torch import Tensor
from transformers import AutoConfig

#: Rows of each product: tokens of an ordinary micro-batch, more of them where more run at once.
TOKENS = {"cpu": 2048, "cuda": 16_384}
#: Seconds for which each shape is repeated; the fastest repeat counts.
PATIENCE_S = 0.2


def peak_tflops(model_path: str) -> float:
    """The highest rate that any of the model's products reaches on this machine.

    Forward products of all linear layers and the head, and the two backward ones of each; nothing
    else may run beside it.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return max(rate for _, rate in rates(model_path, device))


def rates(model_path: str, device: torch.device) -> list[tuple[tuple[int, int, int], float]]:
    """TFLOP/s of each product as (rows, inner, columns)."""
    return [(shape, _rate(*shape, device)) for shape in _products(model_path, TOKENS[device.type])]


def _products(model_path: str, tokens: int) -> list[tuple[int, int, int]]:
    config = AutoConfig.from_pretrained(model_path)
    hidden, heads = config.hidden_size, config.head_dim
    layers = {
        (hidden, config.num_attention_heads * heads),
        (hidden, config.num_key_value_heads * heads),
        (hidden, config.intermediate_size),
        (config.intermediate_size, hidden),
        (hidden, config.vocab_size),
    }
    found = []
    for inputs, outputs in sorted(layers):
        forward = (tokens, inputs, outputs)
        of_input, of_weight = (tokens, outputs, inputs), (outputs, tokens, inputs)
        found += [forward, of_input, of_weight]
    return found


def _rate(rows: int, inner: int, columns: int, device: torch.device) -> float:
    left, right = (
        torch.randn(*shape, dtype=torch.bfloat16, device=device)
        for shape in ((rows, inner), (columns, inner))
    )
    _seconds(left, right)
    best, until = float("inf"), time.perf_counter() + PATIENCE_S
    while time.perf_counter() < until:
        best = min(best, _seconds(left, right))
    return 2 * rows * inner * columns / best / 1e12


def _seconds(left: Tensor, right: Tensor) -> float:
    began = time.perf_counter()
    product = left @ right.T
    # Reading a value waits for the device.
    product[0, 0].item()
    return time.perf_counter() - began

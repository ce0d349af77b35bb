"""What is trained of a model: fields that every method has."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from core.methods.ranges import POSITIVE, Auto, Range

LoraRank = Annotated[
    int | Auto,
    BeforeValidator(Range(int, 1, 512, zero=True)),
    Field(description="Rank of the LoRA adapter; 0 trains the full weights."),
]
LoraAlpha = Annotated[
    float | Auto,
    BeforeValidator(POSITIVE),
    Field(description="Scale of the adapter; its output is multiplied by alpha / rank."),
]
LoraTargets = Annotated[
    list[str] | Literal["auto", "all-linear"],
    Field(min_length=1, description="Names of the linear layers that carry an adapter."),
]
Quantization = Annotated[
    Literal["none", "nf4"],
    Field(description="`nf4` trains the adapter on a base in 4 bits, where bitsandbytes is."),
]

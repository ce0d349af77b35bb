"""Ranges of numbers that a caller may write, checked by one class that can also say them."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

Auto = Literal["auto"]


@dataclass(frozen=True)
class Range:
    """Accepts "auto" or a number of the range; says the whole range when it refuses."""

    kind: type[int] | type[float]
    low: float
    high: float | None = None
    open_low: bool = False
    zero: bool = False

    def __call__(self, value: Any) -> Any:
        if value == "auto":
            return value
        if not self._is_number(value) or not self._contains(value):
            raise PydanticCustomError(
                "out_of_range",
                "must be 'auto' or {range}, not {value}",
                {"range": self.text(), "value": repr(value)[:80]},
            )
        return self.kind(value)

    def text(self) -> str:
        """Return the range in words, as errors and documentation show it."""
        noun = "an integer" if self.kind is int else "a number"
        low = f"above {self.low:g}" if self.open_low else f"from {self.low:g}"
        if self.high is None:
            text = f"{noun} {low}" + ("" if self.open_low else " up")
        elif self.open_low:
            text = f"{noun} {low} and at most {self.high:g}"
        else:
            text = f"{noun} {low} to {self.high:g}"
        return f"0 or {text}" if self.zero else text

    def _is_number(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return math.isfinite(value) and (self.kind is float or value == int(value))

    def _contains(self, value: float) -> bool:
        if self.zero and value == 0:
            return True
        above = value > self.low if self.open_low else value >= self.low
        return above and (self.high is None or value <= self.high)


MAX_EPOCHS = 50
BATCH_SIZE = Range(int, 1, 256)
EPOCHS = Range(int, 1, MAX_EPOCHS)
POSITIVE = Range(float, 0, open_low=True)
COUNT = Range(int, 1)
#: Numbers from 0 up, where 0 turns something off.
FROM_ZERO = Range(float, 0)
SHARE = Range(float, 0, 1)


class Block(BaseModel):
    """A block whose unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

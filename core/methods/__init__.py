"""`method` of a job: what a caller may write, with every range and meaning in one place.

`docs/hyperparameters.md` lists the fields; a test keeps the two in step.
`core.resolve` replaces `"auto"` by values.
"""

from typing import Any, Literal

from pydantic import model_validator

from core.errors import InvalidRequest, UnsupportedMethod
from core.methods.ranges import MAX_EPOCHS, Auto, Block, Range
from core.methods.reinforcement import Hyperparameters, Reinforcement, WarmStart

__all__ = [
    "MAX_EPOCHS",
    "Auto",
    "Hyperparameters",
    "Method",
    "Range",
    "Reinforcement",
    "WarmStart",
    "normalise",
    "reinforcement_of",
]


class Method(Block):
    """`method` of a request. Blocks beside the chosen type are ignored, as OpenAI does."""

    type: Literal["supervised", "dpo", "reinforcement"]
    supervised: Any = None
    dpo: Any = None
    reinforcement: Reinforcement | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_unused(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("type") not in ("supervised", "dpo"):
            return data
        return {name: value for name, value in data.items() if name != "reinforcement"}


def reinforcement_of(method: Method) -> Reinforcement:
    """Return the reinforcement block.

    Raises UnsupportedMethod for the other types and InvalidRequest when the block is missing.
    """
    if method.type != "reinforcement":
        raise UnsupportedMethod(
            f"Method {method.type!r} is not available here yet; use 'reinforcement', with a"
            " 'warm_start' block for supervised examples.",
            param="method.type",
        )
    if method.reinforcement is None:
        raise InvalidRequest(
            "Missing required parameter: 'method.reinforcement'.",
            param="method.reinforcement",
            code="missing_required_parameter",
        )
    return method.reinforcement


def normalise(method: Method) -> dict[str, Any]:
    """Return the method as the job object shows it: the chosen block, defaults filled in."""
    block = reinforcement_of(method)
    shown = block.model_dump(exclude_none=True)
    return {"type": method.type, method.type: shown}

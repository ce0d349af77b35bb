"""`method` of a job: what a caller may write, with every range and meaning in one place.

`docs/hyperparameters.md` lists the fields; a test keeps the two in step.
`core.resolve` replaces `"auto"` by values.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import model_validator

from core.errors import InvalidRequest, UnsupportedMethod
from core.methods.limits import Limits, ReinforcementLimits
from core.methods.offline import OfflineHyperparameters
from core.methods.preference import Preference, PreferenceHyperparameters
from core.methods.ranges import MAX_EPOCHS, Auto, Block, Range
from core.methods.reinforcement import Hyperparameters, Reinforcement, WarmStart
from core.methods.supervised import Supervised, SupervisedHyperparameters

__all__ = [
    "MAX_EPOCHS",
    "TYPES",
    "Auto",
    "Hyperparameters",
    "Limits",
    "Method",
    "MethodBlock",
    "OfflineHyperparameters",
    "Preference",
    "PreferenceHyperparameters",
    "Range",
    "Reinforcement",
    "ReinforcementLimits",
    "Supervised",
    "SupervisedHyperparameters",
    "WarmStart",
    "block_of",
    "chosen",
    "normalise",
    "reinforcement_of",
    "with_block",
]

#: The types of methods, each with a block of its name.
TYPES = ("supervised", "dpo", "reinforcement")

MethodBlock: TypeAlias = Supervised | Preference | Reinforcement


class Method(Block):
    """`method` of a request. Blocks beside the chosen type are ignored, as OpenAI does."""

    type: Literal["supervised", "dpo", "reinforcement"]
    supervised: Supervised | None = None
    dpo: Preference | None = None
    reinforcement: Reinforcement | None = None

    @classmethod
    def considered(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is read of a method: all but the blocks of other types than its own."""
        if data.get("type") not in TYPES:
            return data
        return {k: v for k, v in data.items() if k not in TYPES or k == data["type"]}

    @model_validator(mode="before")
    @classmethod
    def _drop_unused(cls, data: Any) -> Any:
        return cls.considered(data) if isinstance(data, Mapping) else data


def block_of(method: Method) -> MethodBlock:
    """Return the block of the method's type; of one that may be left out, its defaults.

    Raises InvalidRequest when a reinforcement block, which names the grader, is missing.
    """
    if method.type == "supervised":
        return method.supervised or Supervised()
    if method.type == "dpo":
        return method.dpo or Preference()
    if method.reinforcement is None:
        raise InvalidRequest(
            "Missing required parameter: 'method.reinforcement'.",
            param="method.reinforcement",
            code="missing_required_parameter",
        )
    return method.reinforcement


def reinforcement_of(method: Method) -> Reinforcement:
    """Return the reinforcement block, for what samples and grades.

    Raises UnsupportedMethod for the other types and InvalidRequest when the block is missing.
    """
    block = block_of(method)
    if not isinstance(block, Reinforcement):
        raise UnsupportedMethod(
            f"Method {method.type!r} has no grader, so there is nothing to try out; send a method"
            " of type 'reinforcement'.",
            param="method.type",
        )
    return block


def with_block(method: Method, block: MethodBlock) -> Method:
    """Return the method with another block of its type."""
    return method.model_copy(update={method.type: block})


def chosen(method: Mapping[str, Any]) -> dict[str, Any]:
    """Return the block of a stored method, as `normalise` and `core.resolve` leave it."""
    block: dict[str, Any] = method[method["type"]]
    return block


def normalise(method: Method) -> dict[str, Any]:
    """Return the method as the job object shows it: the chosen block, defaults filled in."""
    shown = block_of(method).model_dump(exclude_none=True)
    return {"type": method.type, method.type: shown}

"""What the watch has to say: warnings with their evidence, and early ends that are no failures."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Finding:
    """A warning: a ``code`` for programs, a sentence for people, the numbers behind it."""

    code: str
    message: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stop:
    """An end before the last step that is a success: what was learned so far is the result."""

    reason: Literal["plateau", "max_train_seconds", "max_tokens"]
    message: str
    data: dict[str, Any] = field(default_factory=dict)


#: Where warnings go.
Say = Callable[[Finding], None]

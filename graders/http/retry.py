"""When and after how long a request is sent again."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Answers that say "not now": the same request may succeed later. So may every 5xx.
_LATER = frozenset({408, 409, 425, 429})


def is_transient(status: int) -> bool:
    """Whether an answer with this status is a failure of infrastructure."""
    return status in _LATER or 500 <= status <= 599


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with full jitter, in seconds.

    `budget_s` bounds all tries and waits together; waiting for a turn at a `Gate` is not counted.
    """

    attempts: int = 5
    budget_s: float = 300.0
    base_s: float = 0.5
    cap_s: float = 30.0

    def wait_s(self, failed: int) -> float:
        """How long to wait after the `failed`-th failure: anything up to the doubled limit."""
        return random.uniform(0, min(self.cap_s, self.base_s * 2 ** (failed - 1)))


def retry_after_s(value: str | None) -> float | None:
    """Read a Retry-After header, seconds or a date; None when it is missing or nonsense."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value[:12])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())

"""One measured figure, its floor, and what is asked of it."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """`measured` and `floor` are in `unit`; `floor_is` says what the floor is.

    `limit` is what is asked, as a sentence, and `holds` whether it was reached.
    """

    name: str
    measured: float
    floor: float
    unit: str
    floor_is: str
    limit: str
    holds: bool

    def wire(self) -> dict[str, Any]:
        """The figure as JSON."""
        return asdict(self)

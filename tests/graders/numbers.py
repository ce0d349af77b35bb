"""Reading and comparing numbers, for the tests of the number grader."""

from fractions import Fraction
from typing import Any

from graders import Outcome
from graders.quantity.answer import read_answer
from graders.quantity.literal import Quantity
from tests.graders.examples import grade


def spec(**changes: Any) -> dict[str, Any]:
    """A number grader against the row's answer."""
    return {"type": "number", "name": "total", "reference": "{{item.answer}}"} | changes


def score(text: str, reference: Any, **changes: Any) -> Outcome:
    """Grade one completion."""
    return grade(spec(**changes), text, {"answer": reference})


def value(text: str) -> Fraction | None:
    """The finite number that a whole text is, if it is one."""
    found = read_answer(text)
    return found.value if isinstance(found, Quantity) and not found.infinite else None

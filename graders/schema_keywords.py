"""JSON Schema dialects whose keywords are bounded: paid from a budget, and none able to stall."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from graders.patterns import Pattern

#: Keyword checks for one text; those on long lists, objects and texts count as several.
MAX_STEPS = 50_000
#: Seconds of this thread's work that one text may take: for a machine on which the steps are slow.
#: Waiting for others to work does not count, or a busy machine would refuse what is valid.
MAX_SECONDS = 0.4
#: Members of a list or an object that are looked at in one step.
_MEMBERS_A_STEP = 16
#: Instructions of a pattern, times characters, that are gone through in one step.
_MATCHING_A_STEP = 6_000
#: Most members of an instance that `enum` compares; no value of a schema has as many.
_MOST_MEMBERS = 65_536

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class BudgetSpent(Exception):
    """Checking a text took more than `MAX_STEPS` or `MAX_SECONDS`."""


class Budget:
    """Steps left for one text.

    A failed keyword writes its value into an error message, so a step costs more on a long text.
    """

    def __init__(self) -> None:
        self._left = 0
        self._price = 1
        self._until = 0.0

    def refill(self, chars: int) -> None:
        self._left = MAX_STEPS
        self._price = 1 + chars // 20_000
        self._until = time.thread_time() + MAX_SECONDS

    def spend(self, steps: int = 0) -> None:
        """Pay for one keyword, and for so many steps more."""
        self._left -= self._price + steps
        if self._left < 0 or time.thread_time() > self._until:
            raise BudgetSpent


def bounded(dialect: Any, budget: Budget) -> type[Validator]:
    """The dialect with every keyword paid from the budget and none of them able to stall."""
    keywords: dict[str, Keyword] = dict(dialect.VALIDATORS)
    keywords |= {
        "pattern": _pattern_keyword(budget),
        "uniqueItems": unique_items,
        "required": required,
        "enum": _enum_keyword(),
    }
    paid = {name: _paid(name, keyword, budget) for name, keyword in keywords.items()}

    def is_boolean(_checker: Any, value: Any) -> bool:
        # The search for unevaluated parts calls no keyword, but asks this of every subschema.
        budget.spend()
        return isinstance(value, bool)

    types = dialect.TYPE_CHECKER.redefine("boolean", is_boolean)
    extended: type[Validator] = validators.extend(  # type: ignore[no-untyped-call]
        dialect, paid, type_checker=types
    )
    return extended


def _paid(name: str, keyword: Keyword, budget: Budget) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        members = _members(instance)
        if name.startswith("unevaluated"):
            members *= members  # every member is looked for in a list of all
        if name != "enum":
            members += _members(value)
        budget.spend(members // _MEMBERS_A_STEP)
        return keyword(validator, value, instance, schema)

    return check


def _members(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _pattern_keyword(budget: Budget) -> Keyword:
    compiled: dict[str, Pattern] = {}

    def pattern(_validator: Any, value: str, instance: Any, _schema: Any) -> Any:
        if not isinstance(instance, str):
            return
        if value not in compiled:
            compiled[value] = Pattern(value)
        budget.spend(compiled[value].size * len(instance) // _MATCHING_A_STEP)
        if not compiled[value].found_in(instance):
            yield ValidationError(f"does not match {value!r}")

    return pattern


def _enum_keyword() -> Keyword:
    # The library compares with one value after the other; a set answers at once.
    sets: dict[int, frozenset[Any]] = {}

    def enum(_validator: Any, value: list[Any], instance: Any, _schema: Any) -> Any:
        # Keyed by identity: the schema's lists stay where they are for as long as this function.
        if id(value) not in sets:
            sets[id(value)] = frozenset(map(_frozen, value))
        # No value of a schema is as long as a long instance, which is spared the hashing.
        longer = _members(instance) > _MOST_MEMBERS
        if longer or _frozen(instance) not in sets[id(value)]:
            yield ValidationError("is not one of the values allowed")

    return enum


def required(_validator: Any, value: list[str], instance: Any, _schema: Any) -> Any:
    """The keyword `required`."""
    # The library writes an error for every name that is missing, which takes far longer.
    if isinstance(instance, dict) and any(name not in instance for name in value):
        yield ValidationError("lacks a property that is required")


def unique_items(_validator: Any, value: bool, instance: Any, _schema: Any) -> Any:
    """The keyword `uniqueItems`."""
    # The library compares every pair when items cannot be sorted; hashing stays linear.
    if not value or not isinstance(instance, list):
        return
    if len({_frozen(item) for item in instance}) < len(instance):
        yield ValidationError("has items that are equal")


def _frozen(value: Any) -> Any:
    """A hashable stand-in that is equal for equal JSON: 1 equals 1.0 but not true."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return (bool, value) if isinstance(value, bool) else value

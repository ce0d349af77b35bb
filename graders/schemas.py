"""Checking values against JSON Schemas of users, in bounded time and without any request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry

from graders.formats import format_checker
from graders.patterns import Pattern
from graders.schema_rules import DIALECTS, check_schema

#: Keyword checks for one text; a long text makes each of them cost more (see `Budget`).
MAX_STEPS = 50_000

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class BudgetSpent(Exception):
    """Checking a text took more steps than `MAX_STEPS`."""


class Schema:
    """A schema that passed every rule, ready to check many values."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Check the schema itself; raises `SchemaError`."""
        dialect = check_schema(document)
        self._budget = Budget()
        # The registry is empty: not even a reference that slipped through could fetch anything.
        self._validator = _bounded(DIALECTS[dialect], self._budget)(
            document, registry=Registry(), format_checker=format_checker()
        )
        self._document = document

    def accepts(self, value: Any, *, chars: int) -> bool:
        """Whether the value is valid; `chars` is the length of the text it was read from.

        Raises `BudgetSpent`, and `RecursionError` when schema and value nest too deeply.
        """
        self._budget.refill(chars)
        return self._validator.is_valid(value)

    def accepts_property(self, name: str, value: Any) -> bool:
        """Whether a value is valid for a property of the root; goes on with the same budget."""
        subschema = self._document.get("properties", {}).get(name, True)
        return self._validator.evolve(schema=subschema).is_valid(value)


class Budget:
    """Steps left for one text.

    A failed keyword writes its value into an error message, so a step costs more on a long text.
    """

    def __init__(self) -> None:
        self._left = 0
        self._price = 1

    def refill(self, chars: int) -> None:
        self._left = MAX_STEPS
        self._price = 1 + chars // 20_000

    def spend(self) -> None:
        self._left -= self._price
        if self._left < 0:
            raise BudgetSpent


def _bounded(dialect: Any, budget: Budget) -> type[Validator]:
    """The dialect with every keyword paid from the budget and none of them able to stall."""
    keywords: dict[str, _Keyword] = dict(dialect.VALIDATORS)
    keywords |= {"pattern": _pattern_keyword(), "uniqueItems": _unique_items}
    paid = {name: _paid(keyword, budget) for name, keyword in keywords.items()}
    bounded: type[Validator] = validators.extend(dialect, paid)  # type: ignore[no-untyped-call]
    return bounded


def _paid(keyword: _Keyword, budget: Budget) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        budget.spend()
        return keyword(validator, value, instance, schema)

    return check


def _pattern_keyword() -> _Keyword:
    compiled: dict[str, Pattern] = {}

    def pattern(_validator: Any, value: str, instance: Any, _schema: Any) -> Any:
        if value not in compiled:
            compiled[value] = Pattern(value)
        if isinstance(instance, str) and not compiled[value].found_in(instance):
            yield ValidationError(f"does not match {value!r}")

    return pattern


def _unique_items(_validator: Any, value: bool, instance: Any, _schema: Any) -> Any:
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

"""Checking values against JSON Schemas of users, in bounded time and without any request."""

from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import best_match
from referencing import Registry

from graders.formats import format_checker
from graders.schema_keywords import MAX_STEPS, Budget, BudgetSpent, bounded
from graders.schema_rules import DIALECTS, check_schema, dialect_of

__all__ = ["MAX_STEPS", "BudgetSpent", "Schema"]


class Schema:
    """A schema that passed every rule, ready to check many values."""

    def __init__(self, document: Mapping[str, Any], *, checked: bool = False) -> None:
        """Check the schema itself, unless that was done already; raises `SchemaError`."""
        dialect = dialect_of(document) if checked else check_schema(document)
        self._budget = Budget()
        # Without `$schema`: the library would go on with a dialect of its own for whatever names
        # one. The registry is empty: not even a reference that slipped through could fetch a thing.
        self._document = {key: value for key, value in document.items() if key != "$schema"}
        self._validator = bounded(DIALECTS[dialect], self._budget)(
            self._document, registry=Registry(), format_checker=format_checker()
        )

    def accepts(self, value: Any, *, chars: int) -> bool:
        """Whether the value is valid; `chars` is the length of the text it was read from.

        Raises `BudgetSpent`, and `RecursionError` when schema and value nest too deeply.
        """
        self._budget.refill(chars)
        return self._validator.is_valid(value)

    def problem(self, value: Any, *, chars: int) -> tuple[str, str] | None:
        """The path and the reason of what is most wrong with the value; raises like `accepts`."""
        self._budget.refill(chars)
        error = best_match(self._validator.iter_errors(value))
        if error is None:
            return None
        if error.validator == "required" and isinstance(error.instance, dict):
            lacking = (name for name in error.validator_value if name not in error.instance)
            return error.json_path, f"{next(lacking)!r} is required"
        return error.json_path, error.message

    def accepts_property(self, name: str, value: Any) -> bool:
        """Whether a value is valid for a property of the root; goes on with the same budget."""
        subschema = self._document.get("properties", {}).get(name, True)
        return self._validator.evolve(schema=subschema).is_valid(value)

"""The items of a data source, checked against the schema of their eval.

An entry is `{"item": {…}, "sample": {…}}`, where `sample` is a completion that is there already. A
line of a file without `item`, as in a training file, is the item itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.eval_input import read_paths
from core.evals import grader_of
from graders import jsontext
from graders.paths import Absent, Path
from graders.schemas import BudgetSpent, Schema
from graders.spec import parse_grader, variables

#: Most characters of a schema error that are told: it quotes the value.
_SHOWN = 300


@dataclass(frozen=True)
class Entry:
    """One item, and the sample that came with it."""

    item: dict[str, Any]
    sample: dict[str, Any] | None = None


class BadEntry(ValueError):
    """An entry is no item; the message says why, with a full stop."""


def read_entry(raw: Any) -> Entry:
    """Read one entry of a source; raises `BadEntry`."""
    if not isinstance(raw, dict):
        raise BadEntry("It must be an object with an 'item'.")
    if "item" not in raw:
        return Entry(raw)
    item, sample = raw["item"], raw.get("sample")
    if not isinstance(item, dict):
        raise BadEntry("Its 'item' must be an object.")
    if sample is not None and not isinstance(sample, dict):
        raise BadEntry("Its 'sample' must be an object.")
    if unknown := sorted(raw.keys() - {"item", "sample"}):
        raise BadEntry(f"It has {unknown[0]!r} beside 'item'; only 'sample' may stand there.")
    return Entry(item, sample)


class ItemSchema:
    """The `item_schema` of an eval; without one every object is an item."""

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        """Read a schema that was checked when the eval was made."""
        self._schema = None if document is None else Schema(document, checked=True)

    def check(self, item: dict[str, Any]) -> None:
        """Raise `BadEntry` when the item does not fit."""
        if self._schema is None:
            return
        try:
            found = self._schema.problem(item, chars=len(jsontext.dumps(item)))
        except (BudgetSpent, RecursionError, jsontext.JsonTextError) as error:
            raise BadEntry("Checking it against the item_schema takes too long.") from error
        if found is not None:
            path, message = found
            shown = message if len(message) <= _SHOWN else f"{message[:_SHOWN]}…"
            raise BadEntry(f"It does not fit the item_schema at {path}: {shown}.")


class Needed:
    """The fields that a run reads of items; one that no item has is a mistake in either."""

    def __init__(
        self, criteria: Iterable[Mapping[str, Any]], data_source: Mapping[str, Any]
    ) -> None:
        specs = [parse_grader(grader_of(each)) for each in criteria]
        paths = {path for spec in specs for path in variables(spec) if path.namespace == "item"}
        self._readers = dict.fromkeys(paths, "A criterion")
        if data_source.get("input_messages") is not None:
            self._readers |= dict.fromkeys(read_paths(data_source["input_messages"]), "The input")
        self._lacking: dict[Path, Path | None] = dict.fromkeys(sorted(self._readers, key=str))

    def see(self, item: dict[str, Any]) -> None:
        """Take note of what an item has."""
        for path in list(self._lacking):
            try:
                path.find(item)
            except Absent as absent:
                self._lacking[path] = absent.suggestion
            else:
                del self._lacking[path]

    def check(self) -> None:
        """Raise `BadEntry` when no item seen has a field that is read."""
        for path, suggestion in self._lacking.items():
            hint = f"did you mean {suggestion}?" if suggestion else "add it to the items."
            raise BadEntry(f"{self._readers[path]} reads {path}, which no item has; {hint}")


def sample_of(sample: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a given sample as graders read one; what it lacks is filled in from its text."""
    if sample is None:
        return {}
    text = sample.get("output_text")
    if not isinstance(text, str):
        return dict(sample)
    tools = sample.get("output_tools") or []
    message = {"role": "assistant", "content": text, **({"tool_calls": tools} if tools else {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"output_tools": tools, "choices": [choice], **sample}

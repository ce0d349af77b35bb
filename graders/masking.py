"""Grader JSON as it may be shown: the header values of `endpoint` graders are secrets."""

from collections.abc import Mapping
from typing import Any

#: What stands in place of a header's value.
MASK = "**********"


def masked(grader: Mapping[str, Any]) -> dict[str, Any]:
    """The grader with the values of its headers, and of its children's, masked."""
    shown = dict(grader)
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], MASK)
    if isinstance(shown.get("graders"), dict):
        shown["graders"] = {key: masked(child) for key, child in shown["graders"].items()}
    return shown

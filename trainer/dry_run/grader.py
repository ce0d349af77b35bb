"""The grader as its spec, for what the report asks about its fields."""

from typing import Any

from graders.base import Spec
from graders.spec import parse_grader


def parsed(grader: dict[str, Any]) -> Spec:
    """Read the grader without its headers: their values are secrets that a trainer is not told."""
    return parse_grader(_without_headers(grader))


def _without_headers(grader: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in grader.items() if name != "headers"}
    if "graders" in plain:
        children = plain["graders"].items()
        plain["graders"] = {key: _without_headers(child) for key, child in children}
    return plain

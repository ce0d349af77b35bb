"""Grader JSON that several tests share."""

import asyncio
from typing import Any

from graders import Engine, Outcome


def string_check(**changes: Any) -> dict[str, Any]:
    """An exact comparison of the completion with the row's answer."""
    spec = {
        "type": "string_check",
        "name": "exact",
        "operation": "eq",
        "input": "{{sample.output_text}}",
        "reference": "{{item.answer}}",
    }
    return spec | changes


def multi(graders: Any, formula: str, **changes: Any) -> dict[str, Any]:
    """A multi grader over these graders."""
    return {
        "type": "multi",
        "name": "reward",
        "graders": graders,
        "calculate_output": formula,
    } | changes


def json_schema(schema: Any, **changes: Any) -> dict[str, Any]:
    """A schema grader over the completion."""
    return {"type": "json_schema", "name": "form", "schema": schema} | changes


def grade(spec: Any, output_text: str, item: dict[str, Any] | None = None) -> Outcome:
    """Grade one completion."""
    return asyncio.run(Engine(spec).grade({"output_text": output_text}, item or {})).outcome

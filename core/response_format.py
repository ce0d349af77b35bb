"""Checking `response_format`: a JSON Schema that needs nothing from outside."""

from typing import Any

from graders.schemas import Schema


def check_response_format(response_format: dict[str, Any]) -> None:
    """Raise ValueError unless it is `{"type": "json_schema", "json_schema": {name, schema}}`.

    The schema obeys the same bounds as that of a `json_schema` grader: it is never fetched from
    elsewhere, not even in parts.
    """
    if response_format.get("type") != "json_schema":
        raise ValueError(f"type must be 'json_schema', not {response_format.get('type')!r}")
    block = response_format.get("json_schema")
    if not isinstance(block, dict) or not isinstance(block.get("schema"), dict):
        raise ValueError("json_schema must be an object with 'name' and 'schema'")
    if not isinstance(block.get("name"), str) or not block["name"]:
        raise ValueError("json_schema.name must be a non-empty string")
    Schema(block["schema"])

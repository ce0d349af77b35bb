"""The JSON Schema of a model in one piece, for places of the OpenAPI document without a model."""

from typing import Any

from pydantic import BaseModel


def inline_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema with each reference replaced by what it names; models must not loop."""
    schema = model.model_json_schema(mode="serialization")
    definitions = schema.pop("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return resolved(definitions[value["$ref"].rpartition("/")[2]])
            return {name: resolved(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [resolved(inner) for inner in value]
        return value

    result: dict[str, Any] = resolved(schema)
    return result

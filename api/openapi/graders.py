"""The graders of the document: to a body they are plain JSON, `graders.spec` knows their fields."""

from typing import Any

from pydantic.json_schema import models_json_schema

from graders.base import Spec
from graders.multi import Multi
from graders.spec import GRADERS

NAME = "Grader"

#: Where a body takes a grader: the schema and its field.
PLACES = (
    ("Reinforcement", "grader"),
    ("CreateDryRun", "grader"),
    ("ValidateGrader", "grader"),
    ("RunGrader", "grader"),
)

_DESCRIPTION = (
    "A grader, told apart by its `type`. A `multi` grader may also be given its graders as a list,"
    " or a single one; it is shown with a map."
)


def add(schemas: dict[str, Any]) -> None:
    """Add the schemas of all graders, and refer to them from the bodies that take one."""
    kinds = sorted(GRADERS.items())
    refs, whole = models_json_schema(
        [(spec, "validation") for _, spec in kinds],
        ref_template=f"#/components/schemas/{NAME}{{model}}",
    )
    for name, schema in whole.get("$defs", {}).items():
        schemas[f"{NAME}{name}"] = _with_nulls(schema)
    # A child of a `multi` is one of the others; the class it is checked against knows no fields.
    del schemas[f"{NAME}{Spec.__name__}"]
    schemas[f"{NAME}{Multi.__name__}"]["properties"]["graders"] = {
        "type": "object",
        "description": "Name → grader; `calculate_output` combines their scores by these names.",
        "additionalProperties": {"$ref": f"#/components/schemas/{NAME}"},
    }
    by_type = {kind: refs[(spec, "validation")]["$ref"] for kind, spec in kinds}
    schemas[NAME] = {
        "description": _DESCRIPTION,
        "oneOf": [{"$ref": ref} for ref in by_type.values()],
        "discriminator": {"propertyName": "type", "mapping": by_type},
    }
    for place, field in PLACES:
        field_schema = schemas[place]["properties"][field]
        nullable = "null" in str(field_schema.get("anyOf", ""))
        grader: dict[str, Any] = {"$ref": f"#/components/schemas/{NAME}"}
        schemas[place]["properties"][field] = (
            {"anyOf": [grader, {"type": "null"}]} if nullable else grader
        )


def _with_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """Let optional fields be null, which typed clients send for what was not given."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in required and "null" not in str(field.get("anyOf", "")):
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}
    return schema

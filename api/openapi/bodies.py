"""The request bodies of the document.

Bodies are read in dependencies after authentication, where FastAPI cannot see them; `api.bodies`
knows which dependency reads which model.
"""

from collections.abc import Iterator
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api.bodies import Reads, read_by

REF = "#/components/schemas/"
_BYTES = {
    "type": "string",
    "format": "binary",
    "description": "The content, as a file of the form.",
}


def body_of(route: APIRoute) -> Reads | None:
    """Return what the route reads from its body; None also for a body without fields."""
    for found in _reads(route.dependant):
        if found.model.model_fields or found.files:
            return found
    return None


def _reads(dependant: Dependant) -> Iterator[Reads]:
    found = read_by(dependant.call)
    if found:
        yield found
    for inner in dependant.dependencies:
        yield from _reads(inner)


def body_schemas(
    models: set[type[BaseModel]], taken: dict[str, Any]
) -> tuple[dict[type[BaseModel], str], dict[str, Any]]:
    """Return each model's `$ref`, and the schemas that they need beside those in `taken`.

    A schema that is already there in another form, because answers hold it too, gets the suffix
    `Input`.
    """
    ordered = sorted(models, key=lambda model: (model.__name__, model.__module__))
    refs, whole = models_json_schema(
        [(model, "validation") for model in ordered], ref_template=f"{REF}{{model}}"
    )
    schemas: dict[str, Any] = whole.get("$defs", {})
    renamed = {
        f"{REF}{name}": f"{REF}{name}Input"
        for name, schema in schemas.items()
        if name in taken and taken[name] != schema
    }
    found = {
        renamed.get(f"{REF}{name}", f"{REF}{name}").removeprefix(REF): with_refs(schema, renamed)
        for name, schema in schemas.items()
    }
    own = {model: str(refs[model, "validation"]["$ref"]) for model in ordered}
    return {model: renamed.get(ref, ref) for model, ref in own.items()}, found


def with_refs(schema: Any, renamed: dict[str, str]) -> Any:
    """Return the schema, or a part of a document, with each `$ref` in `renamed` replaced."""
    if isinstance(schema, list):
        return [with_refs(each, renamed) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: with_refs(value, renamed) for key, value in schema.items()}
    reference = changed.get("$ref")
    return {**changed, "$ref": renamed.get(reference, reference)} if reference else changed


def request_body(reads: Reads, ref: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the `requestBody` of an operation; one that may be left out is not required."""
    schema: dict[str, Any] = {"$ref": ref}
    if reads.files:
        # Beside the model, not in an `allOf` with it: the model takes no fields but its own.
        own = schemas[ref.removeprefix(REF)]
        files = {name: dict(_BYTES) for name in reads.files}
        properties = {**files, **own.get("properties", {})}
        required = [*reads.files, *own.get("required", [])]
        schema = {"type": "object", "properties": properties, "required": required}
    needed = reads.files or any(field.is_required() for field in reads.model.model_fields.values())
    return {"required": bool(needed), "content": {reads.content_type: {"schema": schema}}}

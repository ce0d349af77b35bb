"""Build the OpenAPI document: what FastAPI knows, plus bodies, errors, words and examples."""

import copy
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from api.openapi import errors, examples, fields, graders, links, ranges, texts
from api.openapi.bodies import REF, body_of, body_schemas, request_body, with_refs

SECURITY = "ApiKey"
JSON, BYTES = "application/json", "application/octet-stream"
#: FastAPI's own words for a body that is wrong; this API answers 400 in OpenAI's envelope.
_NOT_OURS = ("HTTPValidationError", "ValidationError")


def build(app: FastAPI) -> dict[str, Any]:
    """Return the document of the routes of `app`."""
    document = get_openapi(
        title=app.title,
        version=version("rft-service"),
        description=texts.DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in texts.TAGS.items()],
    )
    document = _with_names_of_pages(document)
    components = document["components"]
    schemas = components["schemas"]
    for name in _NOT_OURS:
        schemas.pop(name, None)
    schemas.update(errors.SCHEMAS)
    components["responses"] = errors.responses()
    components["securitySchemes"] = {
        SECURITY: {"type": "http", "scheme": "bearer", "description": "A key, `sk-rft-…`."}
    }
    document["security"] = [{SECURITY: []}]
    _add_bodies(app, document)
    graders.add(schemas)
    ranges.add(schemas)
    _drop_titles(document["paths"], schemas)
    fields.describe(schemas)
    for route, method, operation in operations(app, document):
        _describe(route, method, operation)
        examples.add(operation)
    links.add(document)
    components["schemas"] = dict(sorted(schemas.items()))
    return document


def _with_names_of_pages(document: dict[str, Any]) -> dict[str, Any]:
    """Call a page of `JobObject` `JobList`: pydantic says `ListPage_JobObject_`."""
    schemas = document["components"]["schemas"]
    names = {name: re.sub(r"^\w+?_(\w+?)(Object)?_$", r"\1List", name) for name in schemas}
    renamed = {f"{REF}{name}": f"{REF}{new}" for name, new in names.items()}
    changed: dict[str, Any] = with_refs(document, renamed)
    found = changed["components"]["schemas"]
    changed["components"]["schemas"] = {names[name]: schema for name, schema in found.items()}
    return changed


def operations(
    app: FastAPI, document: dict[str, Any]
) -> Iterator[tuple[APIRoute, str, dict[str, Any]]]:
    """Yield each route with its method and its operation in the document."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in sorted(route.methods):
                yield route, method, document["paths"][route.path_format][method.lower()]


def _add_bodies(app: FastAPI, document: dict[str, Any]) -> None:
    bodies = [
        (operation, body)
        for route, _, operation in operations(app, document)
        if (body := body_of(route))
    ]
    schemas = document["components"]["schemas"]
    refs, needed = body_schemas({body.model for _, body in bodies}, schemas)
    schemas.update(needed)
    for operation, body in bodies:
        operation["requestBody"] = request_body(body, refs[body.model], schemas)


def _describe(route: APIRoute, method: str, operation: dict[str, Any]) -> None:
    """Give an operation its name, words and errors.

    Its id is the name of the route's function, so that clients generated from the document keep
    their methods when paths move.
    """
    path = route.path_format
    text = " ".join(route.description.split())
    operation["operationId"] = route.operation_id or route.name
    if method == "HEAD":
        operation["operationId"] += "_head"
    operation["summary"] = re.split(r"[.;:] ", text)[0].rstrip(".")
    operation["description"] = route.description
    operation["tags"] = [_tag(path)]
    operation["responses"].pop("422", None)
    unseen = copy.deepcopy(texts.UNSEEN.get(route.name, []))
    if unseen:
        operation.setdefault("parameters", []).extend(unseen)
    for parameter in operation.get("parameters", []):
        words = texts.PARAMETERS.get(parameter["name"])
        if words:
            parameter.setdefault("description", words)
    if path.startswith("/v1/"):
        errors.add_errors(operation, method=method, path=path)
    else:
        operation["security"] = []
    for response in operation["responses"].values():
        _describe_answer(response)


def _describe_answer(response: dict[str, Any]) -> None:
    """Correct what FastAPI assumes of an answer that it does not write itself."""
    if response.get("description") == "Successful Response":
        response["description"] = "The answer."
    content = response.get("content", {})
    if len(content) > 1 and not content.get(JSON, {}).get("schema", True):
        del content[JSON]
    if BYTES in content:
        content[BYTES]["schema"] = {"type": "string", "format": "binary"}


def _drop_titles(*places: Any) -> None:
    """Remove the titles that pydantic makes of names: they say nothing more."""
    for place in places:
        if isinstance(place, dict):
            if isinstance(place.get("title"), str):
                del place["title"]
            _drop_titles(*place.values())
        elif isinstance(place, list):
            _drop_titles(*place)


def _tag(path: str) -> str:
    for part in path.split("/"):
        if part in texts.PARTS:
            return texts.PARTS[part]
    matching = [prefix for prefix in texts.PREFIXES if path.startswith(prefix)]
    return texts.PREFIXES[max(matching, key=len)] if matching else "Service"

"""The generated document is complete, and everything that it shows is true to itself."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from fastapi.routing import APIRoute

from api.openapi.errors import TABLE
from api.openapi.texts import TAGS
from tests.api.running import Api
from tests.contract.documents import Document

#: The permissions of a checkpoint begin with its name, files of weights with their path.
UNLINKED = {
    "create_permissions",
    "list_permissions",
    "download_artifact",
    "download_artifact_head",
}


def operations(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield pointer, name and operation of each operation."""
    for path, methods in document.content["paths"].items():
        for method, operation in methods.items():
            pointer = f"/paths/{path.replace('~', '~0').replace('/', '~1')}/{method}"
            yield pointer, f"{method.upper()} {path}", operation


def media_of(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield pointer, name and content of each media type of a body or of an answer."""
    for pointer, name, operation in operations(document):
        for kind, media in operation.get("requestBody", {}).get("content", {}).items():
            place = f"{pointer}/requestBody/content/{kind.replace('/', '~1')}"
            yield place, f"{name} takes {kind}", media
        for status, response in operation["responses"].items():
            for kind, media in response.get("content", {}).items():
                place = f"{pointer}/responses/{status}/content/{kind.replace('/', '~1')}"
                yield place, f"{name} answers {status} {kind}", media


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from refs(each)
    elif isinstance(value, list):
        for each in value:
            yield from refs(each)


def test_every_route_is_described(api: Api, document: Document) -> None:
    for route in api.app.routes:
        if isinstance(route, APIRoute):
            for method in route.methods:
                assert document.operation(method, route.path_format), route.path


def test_every_operation_has_a_name_of_its_own_and_words(document: Document) -> None:
    names = [operation["operationId"] for *_, operation in operations(document)]
    assert sorted(names) == sorted(set(names))
    for _, name, operation in operations(document):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+|health", operation["operationId"]), name
        assert 5 <= len(operation["summary"]) <= 90, name
        assert operation["description"].rstrip().endswith("."), name
        assert set(operation["tags"]) <= set(TAGS) and len(operation["tags"]) == 1, name
    used = {tag for *_, operation in operations(document) for tag in operation["tags"]}
    assert used == set(TAGS)


def test_every_parameter_is_explained(document: Document) -> None:
    for _, name, operation in operations(document):
        given = {parameter["name"] for parameter in operation.get("parameters", [])}
        assert set(re.findall(r"\{(\w+)\}", name)) <= given
        for parameter in operation.get("parameters", []):
            assert parameter.get("description", "").endswith("."), (name, parameter["name"])


def test_every_field_of_a_body_is_explained(document: Document) -> None:
    names = set()
    for *_, operation in operations(document):
        names |= reachable(document, operation.get("requestBody", {}))
    assert len(names) >= 40
    missing = [
        f"{name}.{field}"
        for name in sorted(names)
        for field, schema in document.schemas[name].get("properties", {}).items()
        if not schema.get("description", "").endswith(".")
    ]
    assert not missing


def reachable(document: Document, value: Any) -> set[str]:
    """The names of the schemas that `value` refers to, directly or through others."""
    found: set[str] = set()
    waiting = [ref.rpartition("/")[2] for ref in refs(value)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [ref.rpartition("/")[2] for ref in refs(document.schemas[name])]
    return found


def test_every_body_and_answer_has_a_schema(document: Document) -> None:
    for _, name, media in media_of(document):
        assert media.get("schema"), name
    for _, name, operation in operations(document):
        good = [status for status in operation["responses"] if status.startswith("2")]
        assert good, name
        assert name.startswith("HEAD") or all(
            operation["responses"][status].get("content") for status in good
        ), name


def test_every_link_leads_to_an_operation_and_tells_its_path(document: Document) -> None:
    """A thing that is made is linked to everything that its id opens."""
    placeholders = {
        operation["operationId"]: set(re.findall(r"\{(\w+)\}", name))
        for _, name, operation in operations(document)
    }
    linked = set()
    for _, name, operation in operations(document):
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                linked.add(link["operationId"])
                assert set(link["parameters"]) == placeholders[link["operationId"]], name
                for value in link["parameters"].values():
                    assert value.startswith("$response.body#/") or f"{{{value[14:]}}}" in name
    unlinked = {name for name, needed in placeholders.items() if needed} - linked
    assert unlinked <= UNLINKED


def test_every_schema_is_one_and_every_reference_leads_somewhere(document: Document) -> None:
    for ref in refs(document.content):
        document.at(ref.removeprefix("#"))
    for schema in document.schemas.values():
        jsonschema_rs.meta.validate(schema)


def test_every_body_and_answer_in_json_has_an_example(document: Document) -> None:
    missing = [
        name
        for _, name, media in media_of(document)
        if "application/json" in name and "example" not in media and not name.startswith("GET /he")
    ]
    assert not missing


def test_every_example_fits_its_schema(document: Document) -> None:
    wrong = {
        name: problems
        for pointer, name, media in media_of(document)
        if "example" in media and "event-stream" not in name
        if (problems := document.problems(f"{pointer}/schema", media["example"]))
    }
    assert not wrong


def test_every_operation_names_its_errors(document: Document) -> None:
    for _, name, operation in operations(document):
        method, _, path = name.partition(" ")
        if not path.startswith("/v1/"):
            assert operation["security"] == []
            continue
        wanted = {400, 401, 403, 429, 500, 503}
        wanted |= {404} if "{" in path else set()
        wanted |= {409, 413, 415} if method == "POST" else set()
        assert {str(status) for status in wanted} <= set(operation["responses"]), name


@pytest.mark.parametrize("status", TABLE)
def test_every_error_has_the_envelope_and_a_true_example(document: Document, status: int) -> None:
    pointer = f"/components/responses/{TABLE[status][0]}/content/application~1json"
    media = document.at(pointer)
    assert media["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}
    assert document.problems(f"{pointer}/schema", media["example"]) == []


def test_keys_are_a_security_scheme(document: Document) -> None:
    assert document.content["security"] == [{"ApiKey": []}]
    assert document.content["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"

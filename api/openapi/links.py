"""The links of the document: which answer holds the id that another operation's path takes.

They follow from the paths: `POST /v1/evals/{eval_id}/runs` answers with the `run_id` of every path
that goes on with `/{run_id}`. What no request makes, as samples, is known from its list.
"""

import re
from collections.abc import Iterator
from typing import Any

#: Links that no path tells: operation → operation that goes on from it, and what that one takes.
_OTHERS: dict[str, dict[str, dict[str, Any]]] = {
    "add_part": {
        "complete_upload": {
            "parameters": {"upload_id": "$request.path.upload_id"},
            "requestBody": {"part_ids": ["$response.body#/id"]},
        }
    },
    "complete_upload": {"retrieve_file": {"parameters": {"file_id": "$response.body#/file/id"}}},
    "retrieve_job": {"retrieve_eval": {"parameters": {"eval_id": "$response.body#/eval_id"}}},
    "clone_job": {"retrieve_job": {"parameters": {"fine_tuning_job_id": "$response.body#/id"}}},
}


def add(document: dict[str, Any]) -> None:
    """Add to each operation's answer the links that go on from it."""
    for path, methods in document["paths"].items():
        made = _place_of_id(document, methods["post"]) if "post" in methods else None
        for method, operation in methods.items():
            place = _place_of_id(document, operation)
            links: dict[str, Any] = {}
            if place and (method == "post" or (method == "get" and made is None)):
                links.update(_by_path(document, path, place))
            for name, link in _OTHERS.get(operation["operationId"], {}).items():
                links[name] = {"operationId": name, **link}
            if links:
                _good(operation)["links"] = links


def _by_path(
    document: dict[str, Any], path: str, place: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    above = {name: f"$request.path.{name}" for name in _placeholders(path)}
    for other, methods in document["paths"].items():
        names = _placeholders(other)
        if other.startswith(f"{path}/{{") and names[:-1] == list(above):
            parameters = {**above, names[-1]: f"$response.body#{place}"}
            for target in methods.values():
                name = target["operationId"]
                yield name, {"operationId": name, "parameters": parameters}


def _placeholders(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _good(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request that succeeds."""
    return next(
        response for status, response in operation["responses"].items() if status.startswith("2")
    )


def _place_of_id(document: dict[str, Any], operation: dict[str, Any]) -> str | None:
    """Return where in the answer the id of a thing stands, or of the first thing of a list."""
    schema = _good(operation).get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    fields = document["components"]["schemas"].get(name, {}).get("properties", {})
    if "id" in fields:
        return "/id"
    return "/data/0/id" if "data" in fields else None

"""The links of the document: which answer holds the id that another operation's path takes.

They follow from the paths. What makes or lists the things of `/v1/evals/{eval_id}/runs` knows the
`run_id` of every path that goes on with `/{run_id}`.
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
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    links = dict(_links(document, path, operation, response))
                    if links:
                        response["links"] = links


def _links(
    document: dict[str, Any], path: str, operation: dict[str, Any], response: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, link in _OTHERS.get(operation["operationId"], {}).items():
        yield name, {"operationId": name, **link}
    place = _place_of_id(document, response)
    if place is None:
        return
    known = {name: f"$request.path.{name}" for name in _placeholders(path)}
    for other, methods in document["paths"].items():
        names = _placeholders(other)
        if other.startswith(f"{path}/{{") and names[:-1] == list(known):
            for target in methods.values():
                yield (
                    target["operationId"],
                    {
                        "operationId": target["operationId"],
                        "parameters": {**known, names[-1]: f"$response.body#{place}"},
                    },
                )


def _placeholders(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _place_of_id(document: dict[str, Any], response: dict[str, Any]) -> str | None:
    """Return where in the answer the id of a thing stands, or of the first thing of a list."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    fields = document["components"]["schemas"].get(name, {}).get("properties", {})
    if "id" in fields:
        return "/id"
    return "/data/0/id" if "data" in fields else None

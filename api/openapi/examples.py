"""The examples of the document: a request and its answer for each operation.

They stand in JSON files beside this one, one for each tag, by the operation's id:
`{"create_job": {"body": {…}, "answer": {…}}}`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from api.errors import error_body

ERROR = {"$ref": "#/components/schemas/ErrorResponse"}
FOLDER = Path(__file__).parent / "examples"


@cache
def by_operation() -> dict[str, dict[str, Any]]:
    """Return the examples of every operation."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.glob("*.json")):
        found.update(json.loads(path.read_text()))
    return found


def add(operation: dict[str, Any]) -> None:
    """Add the examples of `operation`, to bodies and answers in JSON and to forms.

    In a form's example `@train.jsonl` stands for the content of a file, as curl writes it.
    """
    example = by_operation().get(operation["operationId"], {})
    if "body" in example and "requestBody" in operation:
        for media in operation["requestBody"]["content"].values():
            media["example"] = example["body"]
    for status, response in operation["responses"].items():
        media = response.get("content", {}).get("application/json")
        if media and status.startswith("2") and "answer" in example:
            media["example"] = example["answer"]
        elif media and media["schema"] == ERROR:
            media.setdefault("example", error_body(int(status), response["description"]))

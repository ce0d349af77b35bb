"""An OpenAPI document whose response schemas are compiled once and looked up by operation."""

import re
from functools import cache
from typing import Any
from urllib.parse import quote

import jsonschema_rs

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ROOT = "urn:document"


class Document:
    """One OpenAPI 3.1 document; schemas are compiled when they are first needed."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self._registry = jsonschema_rs.Registry([(ROOT, {**content, "$schema": DRAFT})])
        self._compiled: dict[str, jsonschema_rs.Draft202012Validator] = {}

    @property
    def schemas(self) -> dict[str, Any]:
        """The named schemas."""
        return dict(self.content.get("components", {}).get("schemas", {}))

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        """Return the operation of this method and path template, or None."""
        found: dict[str, Any] | None = self.content["paths"].get(path, {}).get(method.lower())
        return found

    def problems(self, pointer: str, value: Any) -> list[str]:
        """Say what in `value` the schema at `pointer`, such as `/components/…`, does not allow."""
        if pointer not in self._compiled:
            # Path templates have braces, which no URI may hold.
            schema = {"$schema": DRAFT, "$ref": f"{ROOT}#{quote(pointer, safe='/~')}"}
            self._compiled[pointer] = jsonschema_rs.Draft202012Validator(
                schema, registry=self._registry
            )
        return [
            f"{_place(error.instance_path)}: {error.message[:300]}"
            for error in self._compiled[pointer].iter_errors(value)
        ]

    def response(self, method: str, path: str, status: int) -> str | None:
        """Return the pointer to a documented response, its `$ref` followed, or None."""
        operation = self.operation(method, path) or {"responses": {}}
        for key in (str(status), f"{status // 100}XX", "default"):
            if key in operation["responses"]:
                reference = operation["responses"][key].get("$ref")
                if reference:
                    return str(reference).removeprefix("#")
                return _pointer("paths", path, method.lower(), "responses", key)
        return None

    def content_types(self, response: str) -> dict[str, Any]:
        """Return the media types of the response at this pointer."""
        return dict(self.at(response).get("content", {}))

    def at(self, pointer: str) -> Any:
        """Return what stands at a JSON pointer; raises KeyError when nothing does."""
        place: Any = self.content
        for part in _parts(pointer):
            place = place[int(part)] if isinstance(place, list) else place[part]
        return place


def schema_of(response: str, content_type: str) -> str:
    """Return the pointer to the schema of one media type of a response."""
    return response + _pointer("content", content_type, "schema")


@cache
def _parts(pointer: str) -> tuple[str, ...]:
    return tuple(
        part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")
    )


def _pointer(*parts: str) -> str:
    return "".join("/" + re.sub("/", "~1", part.replace("~", "~0")) for part in parts)


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)

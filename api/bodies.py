"""Read a request body into its model, with errors in OpenAI's words.

The body is read in a dependency that comes after authentication, so that nobody without a key
makes the server read one.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.concurrency import run_in_threadpool

from api.auth import PrincipalDep
from api.errors import WrongContentType
from api.strict_json import parse_object
from api.unknown_fields import refuse_unknown_fields
from core.errors import InvalidRequest
from graders.errors import SpecError
from graders.wording import reason

Body = TypeVar("Body", bound=BaseModel)
Dependency = TypeVar("Dependency", bound=Callable[..., Any])

JSON, FORM = "application/json", "multipart/form-data"


@dataclass(frozen=True)
class Reads:
    """What a dependency reads from the body: the model, and the form's fields that are files."""

    model: type[BaseModel]
    content_type: str
    files: tuple[str, ...] = ()


_READS: dict[Callable[..., Any], Reads] = {}


def reads(
    model: type[BaseModel], *, content_type: str = JSON, files: tuple[str, ...] = ()
) -> Callable[[Dependency], Dependency]:
    """Say what the decorated dependency reads from the body, for the OpenAPI document.

    FastAPI only knows the bodies that it reads itself.
    """

    def mark(dependency: Dependency) -> Dependency:
        _READS[dependency] = Reads(model, content_type, files)
        return dependency

    return mark


def read_by(dependency: Callable[..., Any] | None) -> Reads | None:
    """Return what a dependency reads from the body, or None for one that reads nothing."""
    return _READS.get(dependency) if dependency else None


def json_body(model: type[Body]) -> Callable[..., Awaitable[Body]]:
    """Return a dependency that reads the request's JSON object as `model`.

    An absent body counts as `{}`: OpenAI's clients send none with cancel, pause and resume.
    """

    @reads(model)
    async def read(request: Request, _: PrincipalDep) -> Body:
        raw = await request.body()
        if not raw:
            return parse(model, {})
        refuse_other_type(request, wanted=JSON)
        # Not on the event loop: the source of a python grader is compiled in a process.
        return await run_in_threadpool(lambda: parse(model, parse_object(raw)))

    return read


def refuse_other_type(request: Request, *, wanted: str) -> None:
    """Raise `WrongContentType` unless the body is declared as `wanted`."""
    declared = request.headers.get("content-type", "")
    if declared.partition(";")[0].strip().lower() != wanted:
        raise WrongContentType(declared, wanted)


def parse(model: type[Body], body: Mapping[str, Any]) -> Body:
    """Validate `body`; raise one `InvalidRequest` that says everything that is wrong with it."""
    refuse_unknown_fields(model, body)
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid(error, body) from error


def invalid(error: ValidationError, body: Mapping[str, Any], *, prefix: str = "") -> InvalidRequest:
    """Translate pydantic's errors into one of ours; the first gives `param` and `code`.

    `prefix` is the path of `body` in the request.
    """
    problems: dict[str, list[tuple[str, str]]] = {}
    for detail in error.errors(include_url=False):
        path = ".".join(filter(None, (prefix, _path(detail, body))))
        for place, code, text in _problems(path, detail):
            problems.setdefault(place, []).append((code, text))
    first, reasons = next(iter(problems.items()))
    sentences = [_sentence(place, found) for place, found in problems.items()]
    return InvalidRequest(" ".join(sentences), param=first or None, code=reasons[0][0])


def _path(detail: ErrorDetails, body: Any) -> str:
    """Return the place in the body; pydantic adds union members to it, which nobody sent."""
    path = ""
    for position, part in enumerate(detail["loc"]):
        last = position == len(detail["loc"]) - 1
        if isinstance(body, Mapping) and part in body:
            body = body[part]
            path += f".{part}"
        elif isinstance(part, int) and isinstance(body, list):
            body = body[part]
            path += f"[{part}]"
        elif last and detail["type"] == "missing":
            path += f".{part}"
    return path.removeprefix(".")


def _problems(path: str, detail: ErrorDetails) -> list[tuple[str, str, str]]:
    """Return place, code and reason; a grader may have several problems of its own."""
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return [
            (".".join(filter(None, (path, problem.param))), problem.code, problem.message)
            for problem in cause.problems
        ]
    if detail["type"] == "missing":
        message = f"Missing required parameter: '{path}'."
        return [(path, "missing_required_parameter", message)]
    return [(path, "invalid_value", reason(detail))]


def _sentence(path: str, problems: list[tuple[str, str]]) -> str:
    """Join what is wrong in one place; only bare reasons still need the place's name."""
    reasons = list(dict.fromkeys(reason for _, reason in problems))
    if problems[0][0] == "missing_required_parameter":
        return reasons[0]
    if problems[0][0] == "invalid_value" and not path:
        return " ".join(f"{each[:1].upper()}{each[1:]}." for each in reasons)
    if problems[0][0] == "invalid_value":
        return f"Invalid value for '{path}': {' or '.join(reasons)}."
    return f"Invalid grader at '{path}': {' '.join(reasons)}"

"""Read a request body into its model, with errors in OpenAI's words.

The body is read in a dependency that comes after authentication, so that nobody without a key
makes the server read one.
"""

from collections.abc import Awaitable, Callable, Mapping
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

Body = TypeVar("Body", bound=BaseModel)


def json_body(model: type[Body]) -> Callable[..., Awaitable[Body]]:
    """Return a dependency that reads the request's JSON object as `model`.

    An absent body counts as `{}`: OpenAI's clients send none with cancel, pause and resume.
    """

    async def read(request: Request, _: PrincipalDep) -> Body:
        raw = await request.body()
        if not raw:
            return parse(model, {})
        refuse_other_type(request, wanted="application/json")
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
        for place, code, reason in _problems(path, detail):
            problems.setdefault(place, []).append((code, reason))
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
    text = str(cause) if cause else detail["msg"]
    return [(path, "invalid_value", text[:1].lower() + text[1:].rstrip("."))]


def _sentence(path: str, problems: list[tuple[str, str]]) -> str:
    """Join what is wrong in one place; only bare reasons still need the place's name."""
    reasons = list(dict.fromkeys(reason for _, reason in problems))
    if problems[0][0] == "missing_required_parameter":
        return reasons[0]
    if problems[0][0] == "invalid_value":
        return f"Invalid value for '{path}': {' or '.join(reasons)}."
    return f"Invalid grader at '{path}': {' '.join(reasons)}"

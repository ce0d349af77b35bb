"""Turning what pydantic found wrong with a grader into sentences that name the way out."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from graders.base import Spec
from graders.errors import SpecError, SpecProblem, TemplateError
from graders.wording import reason


def spec_class(raw: Any, known: Mapping[str, type[Spec]], *, param: str = "") -> type[Spec]:
    """Find the spec class for grader JSON by its `type`; raises `SpecError`."""
    if not isinstance(raw, dict):
        message = f"A grader must be an object with a 'type', not {_shown(raw)}."
        raise SpecError([SpecProblem(param, message)])
    found = known.get(raw["type"]) if isinstance(raw.get("type"), str) else None
    if found is None:
        listed = ", ".join(known)
        given = f"Unknown grader type {_shown(raw['type'])}" if "type" in raw else "No grader type"
        message = f"{given}; known types: {listed}."
        raise SpecError([SpecProblem(_joined(param, "type"), message)])
    return found


def explain(error: ValidationError, spec: type[BaseModel]) -> list[SpecProblem]:
    """Every problem of one grader, its children's included."""
    problems: list[SpecProblem] = []
    for details in error.errors(include_url=False):
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, SpecError):
            problems.extend(cause.problems)
        else:
            problems.append(_problem(details, spec))
    return problems


def nested(problems: SpecError, prefix: str) -> list[SpecProblem]:
    """The problems of a child, with the path to the child in front."""
    return [SpecProblem(_joined(prefix, p.param), p.message, p.code) for p in problems.problems]


def _problem(details: ErrorDetails, spec: type[BaseModel]) -> SpecProblem:
    param = ".".join(str(part) for part in details["loc"])
    match details["type"], details.get("ctx", {}).get("error"):
        case _, TemplateError() as cause:
            return SpecProblem(param, sentence(str(cause)), "template_parse_error")
        case "value_error", ValueError() as cause:
            return SpecProblem(param, sentence(str(cause)))
        case "missing", _:
            return SpecProblem(param, "This field is required.")
        case "extra_forbidden", _:
            return SpecProblem(param, _unknown_field(param, spec))
        case "literal_error", _:
            message = f"Must be {details['ctx']['expected']}, not {_shown(details['input'])}."
            return SpecProblem(param, message)
    return SpecProblem(param, sentence(reason(details)))


def _unknown_field(name: str, spec: type[BaseModel]) -> str:
    known = [field.alias or key for key, field in spec.model_fields.items()]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known fields: {', '.join(known)}."
    return f"Unknown field; {hint}"


def sentence(text: str) -> str:
    """The text with a capital letter in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _joined(prefix: str, param: str) -> str:
    return f"{prefix}.{param}" if prefix and param else prefix or param


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"

"""Reading the nested objects of a judge's spec, with problems that name their place."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graders.base import given
from graders.errors import SpecError, SpecProblem
from graders.problems import explain

Model = TypeVar("Model", bound=BaseModel)


def parsed(model: type[Model], raw: Any, param: str) -> Model:
    """Validate an object at `param`; raises `SpecError` with whole paths."""
    if isinstance(raw, model):
        return raw
    if not isinstance(raw, dict):
        raise SpecError([SpecProblem(param, "Must be an object.")])
    try:
        return model.model_validate(given(raw))
    except ValidationError as error:
        problems = [
            SpecProblem(f"{param}.{found.param}".rstrip("."), found.message, found.code)
            for found in explain(error, model)
        ]
        raise SpecError(problems) from error

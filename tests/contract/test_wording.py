"""What pydantic finds wrong reaches users in our words only."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core.core_schema import ErrorType

from api.bodies import invalid
from api.openapi.bodies import body_of
from api.schemas.chat import ChatRequest
from graders.errors import SpecError
from graders.spec import GRADERS, parse_grader
from graders.wording import REASONS
from tests.api.running import Api

#: One value of each kind that a body can hold, and some at the edge of it.
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, "", "x", "x" * 5000, "1", [], {}, [None], [[]], [{}], ["x"]),
    *({"": None}, {"x": 1}, {"type": "x"}, {"type": None}, ["x"] * 5000),
)
#: How pydantic begins its own sentences.
PYDANTICS = ("Input should", "input should", "should be a valid", "Value error", "Field required")


def bodies(api: Api) -> set[type[BaseModel]]:
    """The models of all bodies."""
    found = (body_of(route) for route in api.app.routes if hasattr(route, "dependant"))
    return {reads.model for reads in found if reads}


def wrong(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield bodies of which one field has a value that may be wrong, at most three levels deep."""
    yield {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        for value in VALUES:
            yield {key: value}
        for inner in inside(field.annotation):
            for part in wrong(inner):
                yield {key: part}
                yield {key: [part]}


def inside(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from inside(argument)


def test_no_body_is_refused_in_pydantics_words(api: Api) -> None:
    models = bodies(api)
    assert len(models) >= 20
    sentences = set()
    for model in models:
        for body in wrong(model):
            try:
                model.model_validate(body)
            except ValidationError as error:
                sentences.add(invalid(error, body).message)
                for detail in error.errors():
                    kind = detail["type"]
                    known = kind in REASONS or kind not in get_args(ErrorType)
                    assert known or kind == "value_error", (kind, detail["msg"])
    assert len(sentences) > 100
    for sentence in sentences:
        assert not any(words in sentence for words in PYDANTICS), sentence


@pytest.mark.parametrize("kind", GRADERS)
def test_no_grader_is_refused_in_pydantics_words(kind: str) -> None:
    for name in GRADERS[kind].model_fields:
        for value in VALUES:
            try:
                parse_grader({"type": kind, "name": "g", name: value})
            except SpecError as error:
                for problem in error.problems:
                    assert not any(words in problem.message for words in PYDANTICS), problem


def test_values_are_spelled_as_in_json() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "store": True}
    with pytest.raises(ValidationError) as caught:
        ChatRequest.model_validate(body)
    assert invalid(caught.value, body).message == "Invalid value for 'store': must be false."


def test_every_reason_is_made_of_what_pydantic_tells() -> None:
    assert set(REASONS) <= set(get_args(ErrorType))
    for reason in REASONS.values():
        assert reason[0].islower() and not reason.endswith(".")

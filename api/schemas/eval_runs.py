"""Runs of evals: the body that creates one."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from api.schemas.common import RequestBody
from api.schemas.jobs import Metadata

#: Fields of a source, by its type; the others are refused with it.
_SOURCE_FIELDS = {
    "file_content": {"content"},
    "file_id": {"id"},
    "stored_completions": {"metadata", "model", "created_after", "created_before", "limit"},
    "responses": {"metadata", "model", "instructions_search", "created_after", "created_before"}
    | {"reasoning_effort", "temperature", "top_p", "users", "tools"},
}
_SOURCES_OF = {
    "jsonl": ("file_content", "file_id"),
    "completions": ("file_content", "file_id", "stored_completions"),
    "responses": ("file_content", "file_id", "responses"),
}


class Source(RequestBody):
    """Where the items come from."""

    type: Literal["file_content", "file_id", "stored_completions", "responses"]
    content: list[dict[str, Any]] | None = None
    id: str | None = None
    metadata: dict[str, Any] | None = None
    model: str | None = None
    created_after: int | None = None
    created_before: int | None = None
    limit: int | None = None
    instructions_search: str | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    users: list[str] | None = None
    tools: list[str] | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        given = set(self.model_dump(exclude_none=True)) - {"type"}
        if foreign := sorted(given - _SOURCE_FIELDS[self.type]):
            raise ValueError(f"a source of type {self.type} has no {foreign[0]}")
        needed = {"file_content": "content", "file_id": "id"}.get(self.type)
        if needed is not None and needed not in given:
            raise ValueError(f"a source of type {self.type} needs {needed}")
        return self


class InputMessages(RequestBody):
    """What the model reads for each item."""

    type: Literal["template", "item_reference"]
    template: list[dict[str, Any]] | None = None
    item_reference: str | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        other = "item_reference" if self.type == "template" else "template"
        if getattr(self, self.type) is None:
            raise ValueError(f"input messages of type {self.type} need {self.type}")
        if getattr(self, other) is not None:
            raise ValueError(f"input messages of type {self.type} have no {other}")
        return self


class SamplingParams(RequestBody):
    """How the model samples; `text` is the Responses API's place for `response_format`."""

    reasoning_effort: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    text: dict[str, Any] | None = None


class DataSource(RequestBody):
    """The items of a run and, unless they bring samples, how the model is asked."""

    type: Literal["jsonl", "completions", "responses"]
    source: Source
    model: Annotated[str, Field(min_length=1)] | None = None
    input_messages: InputMessages | None = None
    sampling_params: SamplingParams | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        allowed = _SOURCES_OF[self.type]
        if self.source.type not in allowed:
            raise ValueError(f"type {self.type} takes a source of type {' or '.join(allowed)}")
        sampling = {"model", "input_messages", "sampling_params"}
        given = sorted(sampling & set(self.model_dump(exclude_none=True)))
        if self.type == "jsonl" and given:
            raise ValueError(f"type jsonl grades what is there and has no {given[0]}")
        params = self.sampling_params or SamplingParams()
        if self.type == "completions" and params.text is not None:
            raise ValueError("sampling_params.text belongs to type responses; use response_format")
        if self.type == "responses" and params.response_format is not None:
            raise ValueError("sampling_params.response_format is for type completions; use text")
        return self


class CreateRun(RequestBody):
    """The body of `POST /v1/evals/{id}/runs`."""

    name: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    metadata: Metadata = None
    data_source: DataSource

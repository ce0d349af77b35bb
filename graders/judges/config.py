"""What the operator says about one judge."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self, TypeAlias

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from graders.http.headers import is_sendable
from graders.http.policy import parse_url

#: Longest time for all tries of one request, in seconds. A judge may be asked twice for one grade,
#: and whoever waits for grades gives up after ten minutes without any.
MAX_BUDGET_S = 290.0

Modality: TypeAlias = Literal["text", "image", "audio"]
Ability: TypeAlias = Literal["chat", "embeddings"]
Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _base_url(text: str) -> str:
    if parse_url(text).query:
        raise ValueError("it may not have a ?query")
    return text.rstrip("/")


def _secret(text: str) -> str:
    if not is_sendable(text):
        raise ValueError("it must be printable ASCII without spaces or line breaks around it")
    return text


Secret: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_secret)]


class JudgeConfig(BaseModel):
    """One entry of the judges file, as the grader process gets it.

    `model` is the name that graders use, or a pattern with `*` and `?`; `upstream` is the name that
    the server knows it by, when it is another. Prices are in US dollars per million tokens.
    """

    # What is wrong with a key is said without the key.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: Annotated[str, AfterValidator(_base_url)]
    api_key: Secret | None = Field(None, repr=False)
    headers: dict[str, Secret] = Field(default_factory=dict, repr=False)
    upstream: Annotated[str, Field(min_length=1)] | None = None
    does: tuple[Ability, ...] = ("chat", "embeddings")
    reads: tuple[Modality, ...] = ("text",)
    structured_output: bool = True
    max_concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    requests_per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=MAX_BUDGET_S)] = 120.0
    budget_s: Annotated[float, Field(gt=0, le=MAX_BUDGET_S)] = 240.0
    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    backoff_s: Annotated[float, Field(ge=0, le=60)] = 0.5
    input_price: Price | None = None
    output_price: Price | None = None

    @model_validator(mode="after")
    def _patterns_keep_the_name(self) -> Self:
        if self.upstream and self.is_pattern:
            raise ValueError("a pattern stands for several models; leave 'upstream' out")
        return self

    @property
    def is_pattern(self) -> bool:
        """Whether `model` stands for several names."""
        return any(sign in self.model for sign in "*?[")

    def covers(self, model: str) -> bool:
        """Whether this entry is for the model of this name."""
        return fnmatchcase(model, self.model) if self.is_pattern else model == self.model

    def url(self, path: str) -> httpx.URL:
        """The URL of one call, as in `/chat/completions`."""
        return httpx.URL(self.base_url + path)


def find(judges: tuple[JudgeConfig, ...], model: str, does: Ability) -> JudgeConfig | None:
    """The entry for a model: one with this very name before a pattern, then the first."""
    able = [judge for judge in judges if does in judge.does and judge.covers(model)]
    return min(able, key=lambda judge: judge.is_pattern, default=None)

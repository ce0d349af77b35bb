"""What the specs of graders that ask a judge have in common."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from graders.base import Finite, Spec
from graders.judges.config import Ability, Modality
from graders.judges.messages import Messages
from graders.judges.parsing import parsed
from graders.paths import Path
from graders.template import paths_of


class SamplingParams(BaseModel):
    """How the judge samples; what is not given is left to its server."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    seed: int | None = None
    temperature: Annotated[Finite, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Finite, Field(gt=0, le=1)] | None = None
    # OpenAI's spelling, with the plural.
    max_completions_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )

    def request(self) -> dict[str, Any]:
        """The fields of a chat request."""
        given = self.model_dump(exclude_none=True)
        if "max_completions_tokens" in given:
            given["max_completion_tokens"] = given.pop("max_completions_tokens")
        return given


def _sampling(raw: Any) -> Any:
    return None if raw is None else parsed(SamplingParams, raw, "sampling_params")


#: The field `sampling_params`.
Sampling = Annotated[SamplingParams | None, BeforeValidator(_sampling)]


class JudgeSpec(Spec):
    """A grader that asks the judge `model`."""

    ability: ClassVar[Ability] = "chat"

    model: Annotated[str, Field(min_length=1, max_length=200)]

    def modalities(self) -> frozenset[Modality]:
        """What the judge has to be able to read."""
        return frozenset({"text"})


class MessagesSpec(JudgeSpec):
    """A judge that is asked with messages of the grader's author."""

    input: Messages

    def paths(self) -> frozenset[Path]:
        return paths_of([text for message in self.input for text in message.templates()])

    def modalities(self) -> frozenset[Modality]:
        return frozenset({"text", *(p.modality for m in self.input for p in m.parts)})

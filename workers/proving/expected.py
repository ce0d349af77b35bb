"""What the trainer recorded of a final model: tokens with the log-probabilities it gives them."""

from typing import Self

from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator

from core.errors import ObjectMissing
from core.store import ObjectStore

#: The file lies among the model's own, so that it goes with them. No manifest names it: it is not
#: part of the model.
NAME = "expected_logprobs.json"
#: Most prompts that are asked, and tokens of each completion: the server may be busy with users.
PROMPTS, TOKENS = 8, 512


class Unusable(Exception):
    """There is nothing to compare with; the sentence says why."""


class Expected(BaseModel):
    """One prompt with its completion, as token ids; `logprobs` has one value for each of these."""

    prompt: list[int] = Field(min_length=1)
    completion: list[int] = Field(min_length=1)
    logprobs: list[FiniteFloat]

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if len(self.logprobs) != len(self.completion):
            raise ValueError("there must be a log-probability for each token of the completion")
        return self

    def cut(self, tokens: int) -> "Expected":
        """Return the same with at most so many tokens of the completion."""
        return Expected(
            prompt=self.prompt,
            completion=self.completion[:tokens],
            logprobs=self.logprobs[:tokens],
        )


_rows = TypeAdapter(list[Expected])


def key(model_prefix: str) -> str:
    """Return where the file of a model lies."""
    return f"{model_prefix.rstrip('/')}/{NAME}"


def read(store: ObjectStore, model_prefix: str, *, context_tokens: int) -> list[Expected]:
    """Return what is to be asked; raises Unusable and StorageError.

    A server reads prompts that leave room for one token of an answer.
    """
    try:
        rows = _rows.validate_json(store.get_bytes(key(model_prefix)))[:PROMPTS]
    except ObjectMissing as error:
        raise Unusable("What the trainer recorded for the proof is not stored any more.") from error
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise Unusable(
            f"What the trainer recorded for the proof cannot be read: {said}."
        ) from error
    room = [min(TOKENS, context_tokens - 1 - len(row.prompt)) for row in rows]
    asked = [row.cut(tokens) for row, tokens in zip(rows, room, strict=True) if tokens > 0]
    if not asked:
        raise Unusable("The trainer recorded no prompt that leaves room in the model's context.")
    return asked

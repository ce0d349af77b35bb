"""One item sampled: the messages that the model read, what it wrote, and what graders see of it."""

import json
from dataclasses import dataclass
from typing import Any

from core.eval_input import DEFAULTS, Render, chat_fields, read_input
from core.eval_items import Entry, sample_of
from core.events import storable
from graders.errors import GradeError
from workers.evals.model import Model, Refusal

NO_USAGE = {"total_tokens": 0, "completion_tokens": 0, "prompt_tokens": 0, "cached_tokens": 0}
NO_ERROR = {"code": "", "message": ""}


@dataclass
class Sampled:
    """A sample as it is `shown`, and as graders read it; None when there is none to grade."""

    shown: dict[str, Any]
    for_graders: dict[str, Any] | None


def given_sample(entry: Entry) -> Sampled:
    """Return the sample that an item brought; graders that read one find it missing otherwise."""
    sample = sample_of(entry.sample)
    text = sample.get("output_text")
    output = [{"role": "assistant", "content": text}] if isinstance(text, str) else []
    shown = shown_sample([], output, fields={"temperature": 0, "top_p": 0, "seed": 0})
    return Sampled(shown, sample)


class Sampler:
    """Samples the items of one run."""

    def __init__(self, model: Model, data_source: dict[str, Any], *, context_tokens: int) -> None:
        """`context_tokens` bounds a completion for which no limit was given."""
        self._model, self._name = model, data_source["model"]
        self._render: Render = read_input(
            data_source["input_messages"], param="data_source.input_messages"
        )
        self._fields = chat_fields(data_source, param="data_source")
        self._limit = self._fields.get("max_completion_tokens", context_tokens)

    async def sample(self, entry: Entry) -> Sampled:
        """Ask the model for one item; raises `RunFailed` when the whole run cannot go on."""
        fields = {**self._fields, "max_completion_tokens": self._limit}
        try:
            messages = self._render(entry.item)
        except GradeError as lack:
            return Sampled(
                shown_sample([], [], fields=fields, error=(lack.kind, lack.detail)), None
            )
        try:
            answer = await self._model.complete({"messages": messages, **self._fields})
        except Refusal as refusal:
            error = (refusal.code, refusal.message)
            return Sampled(shown_sample(messages, [], fields=fields, error=error), None)
        return self._sampled(messages, answer, fields)

    def _sampled(
        self, messages: list[dict[str, Any]], answer: dict[str, Any], fields: dict[str, Any]
    ) -> Sampled:
        choice = answer["choices"][0]
        message = choice.get("message") or {}
        text = storable(message.get("content") or message.get("refusal") or "")
        tools = message.get("tool_calls") or []
        output = {"role": "assistant", "content": text, **({"tool_calls": tools} if tools else {})}
        shown = shown_sample(
            messages,
            [output],
            fields=fields,
            model=self._name,
            finish_reason=choice.get("finish_reason") or "",
            usage=usage_of(answer.get("usage") or {}),
        )
        for_graders = {"output_text": text, "output_tools": tools, "choices": answer["choices"]}
        return Sampled(shown, for_graders)


def usage_of(usage: dict[str, Any]) -> dict[str, int]:
    """Return the tokens of one answer."""
    details = usage.get("prompt_tokens_details") or {}
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    return {
        "total_tokens": usage.get("total_tokens") or prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens": prompt,
        "cached_tokens": details.get("cached_tokens") or 0,
    }


def shown_sample(
    messages: list[dict[str, Any]],
    output: list[dict[str, Any]],
    *,
    fields: dict[str, Any],
    model: str = "",
    finish_reason: str = "",
    usage: dict[str, int] = NO_USAGE,
    error: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return the `sample` of an output item; every field of OpenAI's schema is there."""
    return {
        "input": [_input(message) for message in messages],
        "output": output,
        "finish_reason": finish_reason,
        "model": model,
        "usage": dict(usage),
        "error": {"code": error[0], "message": storable(error[1])} if error else dict(NO_ERROR),
        **{name: fields.get(name, default) for name, default in DEFAULTS.items()},
        "max_completion_tokens": fields.get("max_completion_tokens", 0),
    }


def _input(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the input; content that is no text is shown as JSON."""
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    return {**message, "content": content or ""}

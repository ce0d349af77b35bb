"""Rows in, token ids out."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import TemplateError

from trainer.errors import InvalidData

Row = TypeVar("Row")


@dataclass(frozen=True)
class PromptRow:
    """One row to sample from: the prompt's token ids, and the fields the grader may read."""

    index: int
    token_ids: list[int]
    messages: list[dict[str, Any]]
    item: dict[str, Any]


class Unwritable(InvalidData):
    """A conversation that the chat template does not write; it does not know in which row."""


@contextmanager
def row_of(path: Path, index: int) -> Iterator[str]:
    """Say which row it is that the chat template does not write; gives the row's name."""
    name = f"Row {index + 1} of {path.name}"
    try:
        yield name
    except Unwritable as error:
        raise InvalidData(f"{name} cannot be shown to the model. {error}") from error


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a JSONL file; blank lines are skipped."""
    # Bytes, because a carriage return inside a row is white space and ends no line.
    text = path.read_bytes().decode("utf-8-sig")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def prompt_ids(tokenizer: Any, messages: list[dict[str, Any]], tools: Any = None) -> list[int]:
    """Token ids of a conversation, up to the point where the model speaks."""
    return list(_templated(tokenizer, messages, tools, add_generation_prompt=True))


def template_text(
    tokenizer: Any, messages: list[dict[str, Any]], tools: Any, *, add_generation_prompt: bool
) -> str:
    """A conversation as the chat template writes it.

    Raises:
        Unwritable: the template refuses it.
    """
    text: str = _templated(
        tokenizer, messages, tools, add_generation_prompt=add_generation_prompt, tokenize=False
    )
    return text


def _templated(tokenizer: Any, messages: list[dict[str, Any]], tools: Any, **how: bool) -> Any:
    try:
        return tokenizer.apply_chat_template(
            [_as_template_message(m, tokenizer.chat_template) for m in messages],
            tools=tools,
            return_dict=False,
            **how,
        )
    except TemplateError as error:
        roles = ", ".join(m["role"] for m in messages)
        raise Unwritable(
            f"Its chat template does not take messages with the roles {roles}: {error} "
            "Change or remove the row, or choose another model."
        ) from error


def load_prompts(path: Path, tokenizer: Any, *, room: int, context: int) -> list[PromptRow]:
    """Tokenise every row of a file.

    Args:
        room: tokens that a completion may need.
        context: tokens that the model can see.

    Raises:
        InvalidData: a prompt leaves less than ``room`` tokens of the context, or the chat template
            does not take it.
    """
    rows = []
    for index, row in enumerate(read_rows(path)):
        with row_of(path, index) as where:
            ids = prompt_ids(tokenizer, row["messages"], row.get("tools"))
        if len(ids) + room > context:
            raise InvalidData(
                f"{where} has {len(ids)} prompt tokens; with "
                f"max_completion_tokens={room} that exceeds the model's context of {context} "
                "tokens. Shorten the row or lower max_completion_tokens."
            )
        item = {k: v for k, v in row.items() if k not in ("messages", "tools")}
        rows.append(PromptRow(index, ids, row["messages"], item))
    return rows


def batch_for_step(rows: Sequence[Row], step: int, batch_size: int, seed: int) -> list[Row]:
    """The rows of one step: a fresh seeded order each epoch, no cursor to store.

    A row appears once an epoch; a step that crosses the end of an epoch takes from the next.
    """
    start = step * batch_size
    orders: dict[int, list[int]] = {}
    picked = []
    for position in range(start, start + batch_size):
        epoch, offset = divmod(position, len(rows))
        if epoch not in orders:
            orders[epoch] = list(range(len(rows)))
            random.Random(f"{seed}:{epoch}").shuffle(orders[epoch])
        picked.append(rows[orders[epoch][offset]])
    return picked


def _as_template_message(message: dict[str, Any], template: Any) -> dict[str, Any]:
    role = message["role"]
    if role == "developer" and "developer" not in str(template):
        role = "system"  # its older name
    # Typed clients write fields that are not given as null, which templates take for given.
    given = {key: value for key, value in message.items() if value is not None}
    if given.get("tool_calls"):
        given["tool_calls"] = [_as_template_call(call) for call in given["tool_calls"]]
    return {**given, "role": role, "content": said(message)}


def _as_template_call(call: dict[str, Any]) -> dict[str, Any]:
    """A tool call with its arguments as an object, as the server that samples passes them on."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError:
        return call  # what is no JSON is shown as it is
    return {**call, "function": {**function, "arguments": arguments}}


def said(message: dict[str, Any]) -> str:
    """The text of a message, or its refusal; empty for one that only calls tools.

    Never None, to which many templates cannot add the mark that ends the turn.
    """
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if part["type"] not in ("text", "refusal"):
                raise Unwritable(
                    f"A message has a part of type {part['type']!r}, but the model reads text "
                    "only. Leave out the rows with such parts."
                )
        return "".join(part.get("text") or part.get("refusal") or "" for part in content)
    return content or message.get("refusal") or ""


def text_of(content: Any) -> str | None:
    """The text of a message's content, its parts put together; ``None`` for none."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    text: str | None = content
    return text

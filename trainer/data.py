"""Rows in, token ids out."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from trainer.errors import InvalidData
from trainer.policy import Policy


@dataclass(frozen=True)
class PromptRow:
    """One row to sample from: the prompt's token ids, and the fields the grader may read."""

    index: int
    token_ids: list[int]
    messages: list[dict[str, Any]]
    item: dict[str, Any]


@dataclass(frozen=True)
class Demonstration:
    """One row to imitate: a prompt and the target that follows it, as token ids."""

    prompt_ids: list[int]
    target_ids: list[int]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a JSONL file; blank lines are skipped."""
    # Bytes, because a carriage return inside a row is white space and ends no line.
    text = path.read_bytes().decode("utf-8-sig")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def prompt_ids(tokenizer: Any, messages: list[dict[str, Any]], tools: Any = None) -> list[int]:
    """Token ids of a conversation, up to the point where the model speaks."""
    return _template_ids(tokenizer, messages, tools, add_generation_prompt=True)


def _template_ids(
    tokenizer: Any, messages: list[dict[str, Any]], tools: Any, *, add_generation_prompt: bool
) -> list[int]:
    try:
        return list(
            tokenizer.apply_chat_template(
                [_as_template_message(m) for m in messages],
                tools=tools,
                add_generation_prompt=add_generation_prompt,
                return_dict=False,
            )
        )
    except TemplateError as error:
        roles = ", ".join(m["role"] for m in messages)
        raise InvalidData(
            f"The model's chat template does not take messages with the roles {roles}: {error}"
        ) from error


def load_prompts(path: Path, tokenizer: Any, *, room: int, context: int) -> list[PromptRow]:
    """Tokenise every row of a file.

    Args:
        room: tokens that a completion may need.
        context: tokens that the model can see.

    Raises:
        InvalidData: a prompt leaves less than ``room`` tokens of the context.
    """
    rows = []
    for index, row in enumerate(read_rows(path)):
        ids = prompt_ids(tokenizer, row["messages"], row.get("tools"))
        if len(ids) + room > context:
            raise InvalidData(
                f"Row {index + 1} of {path.name} has {len(ids)} prompt tokens; with "
                f"max_completion_tokens={room} that exceeds the model's context of {context} "
                "tokens. Shorten the row or lower max_completion_tokens."
            )
        item = {k: v for k, v in row.items() if k not in ("messages", "tools")}
        rows.append(PromptRow(index, ids, row["messages"], item))
    return rows


def load_demonstrations(
    path: Path, policy: Policy, *, reference_field: str | None, context: int
) -> list[Demonstration]:
    """Demonstrations from rows that end with an assistant message, or from a field of the rows.

    Raises:
        InvalidData: a target has no text, or a row is longer than the context.
    """
    tokenizer = policy.tokenizer
    demonstrations = []
    for index, row in enumerate(read_rows(path)):
        where = f"Row {index + 1} of {path.name}"
        if reference_field is None:
            messages, target = row["messages"][:-1], _text(row["messages"][-1].get("content"))
        else:
            messages, target = row["messages"], row.get(reference_field)
        if target is None or target == "":
            raise InvalidData(f"{where} has no text to imitate. Give it one or remove the row.")
        text = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)
        prompt = prompt_ids(tokenizer, messages, row.get("tools"))
        # Tokenised apart from the prompt, as the sampler will write it: after the prompt's last id.
        target_ids = tokenizer.encode(text, add_special_tokens=False)
        target_ids.append(_turn_end(policy, messages, text))
        if len(prompt) + len(target_ids) > context:
            raise InvalidData(
                f"{where} has {len(prompt) + len(target_ids)} tokens, more than the model's "
                f"context of {context}. Shorten the row."
            )
        demonstrations.append(Demonstration(prompt, target_ids))
    return demonstrations


def _turn_end(policy: Policy, messages: list[dict[str, Any]], text: str) -> int:
    """The id with which the chat template ends a turn; a model may have several that end one."""
    spoken = [*messages, {"role": "assistant", "content": text}]
    ids = _template_ids(policy.tokenizer, spoken, None, add_generation_prompt=False)
    ends = (token for token in reversed(ids) if token in policy.end_ids)
    return next(ends, policy.tokenizer.eos_token_id)


def batch_for_step(rows: list[PromptRow], step: int, batch_size: int, seed: int) -> list[PromptRow]:
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


def _as_template_message(message: dict[str, Any]) -> dict[str, Any]:
    # Chat templates know the role by its older name.
    role = "system" if message["role"] == "developer" else message["role"]
    # Typed clients write fields that are not given as null, which templates take for given.
    given = {key: value for key, value in message.items() if value is not None}
    return {**given, "role": role, "content": _said(message)}


def _said(message: dict[str, Any]) -> str:
    """The text of a message, or its refusal; empty for one that only calls tools.

    Never None, to which many templates cannot add the mark that ends the turn.
    """
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text") or part.get("refusal") or "" for part in content)
    return content or message.get("refusal") or ""


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")

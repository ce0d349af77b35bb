"""Rows in, token ids out."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InvalidData


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
    text = path.read_text(encoding="utf-8-sig")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def prompt_ids(tokenizer: Any, messages: list[dict[str, Any]], tools: Any = None) -> list[int]:
    """Token ids of a conversation, up to the point where the model speaks."""
    return list(
        tokenizer.apply_chat_template(
            [_as_template_message(m) for m in messages],
            tools=tools,
            add_generation_prompt=True,
            return_dict=False,
        )
    )


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
    path: Path, tokenizer: Any, *, reference_field: str | None, context: int
) -> list[Demonstration]:
    """Demonstrations from rows that end with an assistant message, or from a field of the rows."""
    end = tokenizer.eos_token_id
    demonstrations = []
    for index, row in enumerate(read_rows(path)):
        if reference_field is None:
            messages, target = row["messages"][:-1], row["messages"][-1]["content"]
        else:
            messages, target = row["messages"], row[reference_field]
        text = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)
        prompt = prompt_ids(tokenizer, messages, row.get("tools"))
        # Tokenised apart from the prompt, as the sampler will write it: after the prompt's last id.
        target_ids = [*tokenizer.encode(text, add_special_tokens=False), end]
        if len(prompt) + len(target_ids) > context:
            raise InvalidData(
                f"Row {index + 1} of {path.name} has {len(prompt) + len(target_ids)} tokens, more "
                f"than the model's context of {context}. Shorten the row."
            )
        demonstrations.append(Demonstration(prompt, target_ids))
    return demonstrations


def batch_for_step(rows: list[PromptRow], step: int, batch_size: int, seed: int) -> list[PromptRow]:
    """The rows of one step: a fresh seeded order each epoch, no cursor to store.

    A row appears once an epoch; a step that crosses the end of an epoch takes from the next.
    """
    start = step * batch_size
    picked = []
    for position in range(start, start + batch_size):
        epoch, offset = divmod(position, len(rows))
        order = list(range(len(rows)))
        random.Random(f"{seed}:{epoch}").shuffle(order)
        picked.append(rows[order[offset]])
    return picked


def _as_template_message(message: dict[str, Any]) -> dict[str, Any]:
    # Chat templates know the role by its older name.
    role = "system" if message["role"] == "developer" else message["role"]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part["type"] == "text")
    return {**message, "role": role, "content": content}

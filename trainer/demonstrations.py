"""What is imitated: answers after prompts, as the token ids that a sampler would see and write.

A prompt is rendered as it is for sampling, and the answer is tokenised apart from it, because a
sampler writes it after the prompt's last id. Several answers of one conversation share a row where
the earlier ones stand in the later prompts id for id; a template that rewrites what was said before
(as those that leave out earlier thoughts) makes a row of its own for each.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.data import prompt_ids, read_rows, row_of, said, template_text, text_of
from trainer.errors import InvalidData
from trainer.packing import Group
from trainer.policy import Policy


@dataclass(frozen=True)
class Demonstration:
    """A prompt, the ids that follow it, and which of those are learnt; the last one always is."""

    prompt_ids: list[int]
    target_ids: list[int]
    learnt: list[bool]

    @classmethod
    def of(cls, prompt: list[int], answer: list[int]) -> "Demonstration":
        """One answer, learnt whole."""
        return cls(prompt, answer, [True] * len(answer))

    def followed_by(self, prompt: list[int], answer: list[int]) -> "Demonstration | None":
        """With a later answer of the same conversation, if this one stands before it as it is."""
        whole = self.prompt_ids + self.target_ids
        if prompt[: len(whole)] != whole:
            return None
        between = prompt[len(whole) :]
        return Demonstration(
            self.prompt_ids,
            self.target_ids + between + answer,
            self.learnt + [False] * len(between) + [True] * len(answer),
        )

    @property
    def group(self) -> Group:
        """What the forward pass takes."""
        return Group(self.prompt_ids, [self.target_ids])

    @property
    def tokens(self) -> int:
        """How many tokens are learnt."""
        return sum(self.learnt)

    @property
    def learnt_ids(self) -> list[int]:
        """The tokens that are learnt."""
        return [token for token, learnt in zip(self.target_ids, self.learnt, strict=True) if learnt]


def load_demonstrations(
    path: Path, policy: Policy, *, reference_field: str | None, context: int
) -> list[Demonstration]:
    """The last message of each row, or a field of it, as text that a grader would read.

    Raises:
        InvalidData: a target has no text, or a row is longer than the context.
    """
    demonstrations = []
    for index, row in enumerate(read_rows(path)):
        if reference_field is None:
            messages, target = row["messages"][:-1], text_of(row["messages"][-1].get("content"))
        else:
            messages, target = row["messages"], row.get(reference_field)
        with row_of(path, index) as where:
            if target is None or target == "":
                raise InvalidData(f"{where} has no text to imitate. Give it one or remove the row.")
            text = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)
            prompt = prompt_ids(policy.tokenizer, messages, row.get("tools"))
            found = Demonstration.of(prompt, text_ids(policy, messages, text))
        _check_length(found, where, context)
        demonstrations.append(found)
    return demonstrations


def load_conversations(path: Path, policy: Policy, *, context: int) -> list[list[Demonstration]]:
    """Of each row every assistant message of weight 1, as the chat template writes it.

    Raises:
        InvalidData: the template does not take a row, or a row is longer than the context.
    """
    conversations = []
    for index, row in enumerate(read_rows(path)):
        with row_of(path, index) as where:
            found = demonstrations_in(row, policy, where)
        for demonstration in found:
            _check_length(demonstration, where, context)
        conversations.append(found)
    return conversations


def demonstrations_in(row: dict[str, Any], policy: Policy, where: str) -> list[Demonstration]:
    """What is learnt of one conversation, in as few rows as its template allows."""
    messages, tools = row["messages"], row.get("tools")
    found: list[Demonstration] = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant" or message.get("weight") == 0:
            continue
        prompt = prompt_ids(policy.tokenizer, messages[:index], tools)
        answer = answer_ids(policy, messages[:index], message, tools, where=where)
        longer = found[-1].followed_by(prompt, answer) if found else None
        if longer is None:
            found.append(Demonstration.of(prompt, answer))
        else:
            found[-1] = longer
    return found


def answer_ids(
    policy: Policy,
    before: list[dict[str, Any]],
    message: dict[str, Any],
    tools: Any = None,
    *,
    where: str,
) -> list[int]:
    """An assistant message as ids that follow its prompt, up to the token that ends the turn.

    Raises:
        InvalidData: the template does not write the tool calls of the message after its prompt.
    """
    tokenizer = policy.tokenizer
    prompt = template_text(tokenizer, before, tools, add_generation_prompt=True)
    whole = template_text(tokenizer, [*before, message], tools, add_generation_prompt=False)
    written = whole[len(prompt) :] if whole.startswith(prompt) else None
    calls = message.get("tool_calls") or []
    if written is None and not calls:
        # The template opens an answer in another way than it repeats one: with thoughts, mostly.
        return text_ids(policy, before, said(message))
    if written is None or any(call["function"]["name"] not in written for call in calls):
        raise InvalidData(
            f"{where} calls tools, which the model's chat template does not write as an answer. "
            "Set the message's weight to 0, or choose a model whose template knows tools."
        )
    ids, end_ids = tokenizer.encode(written, add_special_tokens=False), policy.end_ids
    ends = [position for position, token in enumerate(ids) if token in end_ids]
    # White space after the end of the turn belongs to the template.
    return ids[: ends[-1] + 1] if ends else [*ids, tokenizer.eos_token_id]


def text_ids(policy: Policy, before: list[dict[str, Any]], text: str) -> list[int]:
    """A text as ids, with the one that ends the turn."""
    ids: list[int] = policy.tokenizer.encode(text, add_special_tokens=False)
    return [*ids, _turn_end(policy, before, text)]


def _turn_end(policy: Policy, before: list[dict[str, Any]], text: str) -> int:
    """The id with which the chat template ends a turn; a model may have several that end one."""
    spoken = [*before, {"role": "assistant", "content": text}]
    written = template_text(policy.tokenizer, spoken, None, add_generation_prompt=False)
    ids, end_ids = policy.tokenizer.encode(written, add_special_tokens=False), policy.end_ids
    ends = (token for token in reversed(ids) if token in end_ids)
    end: int = next(ends, policy.tokenizer.eos_token_id)
    return end


def _check_length(demonstration: Demonstration, where: str, context: int) -> None:
    tokens = demonstration.group.tokens
    if tokens > context:
        raise InvalidData(
            f"{where} has {tokens} tokens, more than the model's context of {context}. "
            "Shorten the row."
        )

"""A worker counts the tokens of rows as the trainer will."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.data import load_prompts, prompt_ids
from trainer.demonstrations import load_conversations, load_demonstrations
from trainer.policy import Policy
from trainer.preference.pairs import load_pairs
from workers.prompt_lengths import at_most, counter

SYSTEM = {"role": "developer", "content": "Be brief."}
USER = {"role": "user", "content": [{"type": "text", "text": "Grüße, 東京 🙂"}]}
ANSWER = {"role": "assistant", "content": "Hello there.", "weight": None}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def written(path: Path, row: dict[str, Any]) -> Path:
    path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER]},
        {"messages": [SYSTEM, USER, ANSWER, USER], "tools": [TOOL], "answer": "a"},
    ],
)
def test_prompts(tmp_path: Path, tiny_policy: Policy, row: dict[str, Any]) -> None:
    path = written(tmp_path / "train.jsonl", row)
    [prompt] = load_prompts(path, tiny_policy.tokenizer, room=1, context=4096)
    count = counter(tiny_policy.tokenizer, kind="reinforcement", target=None)
    assert count(row) == len(prompt.token_ids)
    assert count(row) <= at_most(row)


@pytest.mark.parametrize("target", [None, "answer"])
def test_demonstrations(tmp_path: Path, tiny_policy: Policy, target: str | None) -> None:
    row: dict[str, Any] = {"messages": [SYSTEM, USER], "answer": {"a": "ü"}}
    if target is None:
        row["messages"].append(ANSWER)
    path = written(tmp_path / "warm_start.jsonl", row)
    [shown] = load_demonstrations(path, tiny_policy, reference_field=target, context=4096)
    kind = "reinforcement" if target else "warm_start"
    count = counter(tiny_policy.tokenizer, kind=kind, target=target)
    assert count(row) == len(shown.prompt_ids) + len(shown.target_ids)
    assert count(row) <= at_most(row, target)


def test_conversations_and_preferences(tmp_path: Path, tiny_policy: Policy) -> None:
    talk: dict[str, Any] = {"messages": [SYSTEM, USER, ANSWER, USER, ANSWER], "tools": [TOOL]}
    [[shown]] = load_conversations(written(tmp_path / "a.jsonl", talk), tiny_policy, context=4096)
    count = counter(tiny_policy.tokenizer, kind="supervised", target=None)
    assert count(talk) == shown.group.tokens <= at_most(talk)
    other = {"role": "assistant", "content": "A much longer answer."}
    row = {
        "input": {"messages": [SYSTEM, USER]},
        "preferred_output": [ANSWER],
        "non_preferred_output": [other],
    }
    [pair] = load_pairs(written(tmp_path / "b.jsonl", row), tiny_policy, context=4096)
    count = counter(tiny_policy.tokenizer, kind="preference", target=None)
    longest = len(pair.prompt_ids) + len(pair.non_preferred_ids)
    assert count(row) == longest <= at_most(row)


def test_null_fields_are_not_shown_to_the_template(tiny_policy: Policy) -> None:
    tiny_policy.tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}{% if 'tool_calls' in m %}CALLS{% endif %}"
        "{% endfor %}"
    )
    ids = prompt_ids(tiny_policy.tokenizer, [{**ANSWER, "tool_calls": None}])
    assert tiny_policy.tokenizer.decode(ids) == "Hello there."

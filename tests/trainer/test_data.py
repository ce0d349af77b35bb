"""Rows become the token ids that the sampler will see and write."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.data import PromptRow, batch_for_step, prompt_ids, read_rows
from trainer.demonstrations import load_demonstrations
from trainer.errors import InvalidData
from trainer.policy import Policy


def _write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _load(path: Path, policy: Policy, field: str | None = None) -> list[str]:
    found = load_demonstrations(path, policy, reference_field=field, context=512)
    return [policy.tokenizer.decode(d.target_ids) for d in found]


USER = {"role": "user", "content": "hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_only_a_line_feed_ends_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    text = '\ufeff{"a":\r1,"b":"\u2028"}\r\n\r\n{"a":2}\r\r\n{"a":3}'
    path.write_bytes(text.encode())
    assert read_rows(path) == [{"a": 1, "b": "\u2028"}, {"a": 2}, {"a": 3}]


def test_text_parts_are_one_text(tmp_path: Path, tiny_policy: Policy) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    path = _write(
        tmp_path / "w.jsonl", {"messages": [USER, {"role": "assistant", "content": parts}]}
    )
    assert _load(path, tiny_policy) == ["Hello<|im_end|>"]


@pytest.mark.parametrize("last", [{"role": "assistant"}, {"role": "assistant", "content": None}])
def test_a_target_without_text_is_refused(
    tmp_path: Path, tiny_policy: Policy, last: dict[str, Any]
) -> None:
    path = _write(tmp_path / "w.jsonl", {"messages": [USER, last]})
    with pytest.raises(InvalidData, match=r"Row 1 of w.jsonl has no text to imitate"):
        _load(path, tiny_policy)


def test_a_field_may_hold_any_json_but_null(tmp_path: Path, tiny_policy: Policy) -> None:
    path = _write(tmp_path / "w.jsonl", {"messages": [USER], "answer": {"a": 1}})
    assert _load(path, tiny_policy, "answer") == ['{"a": 1}<|im_end|>']
    path = _write(tmp_path / "w.jsonl", {"messages": [USER], "answer": None})
    with pytest.raises(InvalidData, match="no text to imitate"):
        _load(path, tiny_policy, "answer")


def test_a_turn_ends_as_the_template_ends_it(tmp_path: Path, tiny_policy: Policy) -> None:
    """Some tokenizers call another token their end than the one that ends a turn."""
    tiny_policy.tokenizer.eos_token = "<|bos|>"
    tiny_policy.model.generation_config.eos_token_id = [256, 257]
    path = _write(tmp_path / "w.jsonl", {"messages": [USER, {"role": "assistant", "content": "a"}]})
    assert _load(path, tiny_policy) == ["a<|im_end|>"]


def test_developer_is_the_system_role(tiny_policy: Policy) -> None:
    ids = prompt_ids(tiny_policy.tokenizer, [{"role": "developer", "content": "be brief"}, USER])
    text = tiny_policy.tokenizer.decode(ids)
    assert text.startswith("<|im_start|>system\nbe brief<|im_end|>")
    assert text.endswith("<|im_start|>assistant\n")


def test_a_template_may_know_the_developer(tiny_policy: Policy) -> None:
    tiny_policy.tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'developer' %}!{% endif %}{{ m.role }}{% endfor %}"
    )
    ids = prompt_ids(tiny_policy.tokenizer, [{"role": "developer", "content": "be brief"}, USER])
    assert tiny_policy.tokenizer.decode(ids) == "!developeruser"


def test_a_part_that_is_no_text_is_refused(tiny_policy: Policy) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
    with pytest.raises(InvalidData, match="part of type 'image_url', but the model reads text"):
        prompt_ids(tiny_policy.tokenizer, [{"role": "user", "content": [part]}])


def test_a_template_that_refuses_is_quoted(tiny_policy: Policy) -> None:
    tiny_policy.tokenizer.chat_template = "{{ raise_exception('no system role') }}"
    with pytest.raises(InvalidData, match=r"roles user: no system role"):
        prompt_ids(tiny_policy.tokenizer, [USER])


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": None, "tool_calls": [CALL]}, ""),
        ({"tool_calls": [CALL]}, ""),
        ({"content": None, "refusal": "No."}, "No."),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "No."),
    ],
)
def test_a_message_without_content_is_kept(
    message: dict[str, Any], said: str, tiny_policy: Policy
) -> None:
    adding = "{% for m in messages %}{{ '[' + m['role'] + ':' + m['content'] + ']' }}{% endfor %}"
    tiny_policy.tokenizer.chat_template = adding
    ids = prompt_ids(tiny_policy.tokenizer, [USER, {"role": "assistant", **message}, USER])
    assert tiny_policy.tokenizer.decode(ids) == f"[user:hi][assistant:{said}][user:hi]"


def test_each_epoch_shows_every_row_once_in_a_new_order() -> None:
    rows = [PromptRow(i, [i], [], {}) for i in range(10)]
    seen = [r.index for step in range(5) for r in batch_for_step(rows, step, 4, seed=1)]
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]
    again = [r.index for step in range(5) for r in batch_for_step(rows, step, 4, seed=1)]
    other = [r.index for step in range(5) for r in batch_for_step(rows, step, 4, seed=2)]
    assert seen == again != other

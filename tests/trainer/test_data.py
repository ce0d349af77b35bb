"""Rows become the token ids that the sampler will see and write."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaForCausalLM, MistralConfig, PhiConfig

from trainer.architecture import check_architecture
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


def _policy_of(config: Any, like: Policy) -> Policy:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    return Policy(model, like.tokenizer, lora_rank=0)


SIZES = {
    "vocab_size": 260,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "initializer_range": 0.3,
}
ROWS = [PromptRow(0, list(range(40)), [], {})]


def test_a_plain_decoder_passes(tiny_policy: Policy) -> None:
    assert isinstance(tiny_policy.model, LlamaForCausalLM)
    check_architecture(tiny_policy, ROWS)


def test_a_window_shorter_than_the_rows_is_refused(tiny_policy: Policy) -> None:
    policy = _policy_of(MistralConfig(**SIZES, sliding_window=8), tiny_policy)
    with pytest.raises(InvalidData, match="Models of type mistral cannot be trained here yet"):
        check_architecture(policy, ROWS)


def test_a_biased_head_is_refused(tiny_policy: Policy) -> None:
    policy = _policy_of(PhiConfig(**SIZES), tiny_policy)
    with torch.no_grad():
        policy.model.lm_head.bias.normal_(std=3)
    with pytest.raises(InvalidData, match="Models of type phi"):
        check_architecture(policy, ROWS)

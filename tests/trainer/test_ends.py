"""Every id that ends a completion is known, wherever it is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.ends import end_ids, template_end
from trainer.policy import Policy

BOS, END, START = 256, 257, 258


@pytest.mark.parametrize(
    ("template", "end"),
    [
        ("{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>\n{% endfor %}", END),
        ("{% for m in messages %}{{ m.content }} <|bos|>{% endfor %}", BOS),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", None),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", None),
        ("{{ raise_exception('no') }}", None),
        ("{% for m in messages %}{{ m.content | upper }}<|im_end|>{% endfor %}", None),
    ],
)
def test_the_template_says_how_a_turn_ends(
    tiny_policy: Policy, template: str, end: int | None
) -> None:
    tiny_policy.tokenizer.chat_template = template
    assert template_end(tiny_policy.tokenizer) == end


@pytest.mark.parametrize("configured", [None, BOS, [BOS], [BOS, START]])
def test_ends_of_model_tokenizer_and_template_all_count(
    tiny_policy: Policy, configured: Any
) -> None:
    tiny_policy.model.generation_config.eos_token_id = configured
    tiny_policy.tokenizer.eos_token = "<|bos|>"
    listed = set(configured) if isinstance(configured, list) else {configured} - {None}
    assert end_ids(tiny_policy.model, tiny_policy.tokenizer) == listed | {BOS, END}


def test_an_export_ends_where_the_policy_does(tiny_policy: Policy, tmp_path: Path) -> None:
    tiny_policy.model.generation_config.eos_token_id = [BOS, END]
    tiny_policy.save_model(tmp_path)
    written = json.loads((tmp_path / "generation_config.json").read_text())
    assert written["eos_token_id"] == [BOS, END]
    assert tiny_policy.end_ids == {BOS, END}

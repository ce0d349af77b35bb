"""An adapter folded into its base is one model that needs no peft."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.export import merge
from trainer.packing import Group
from trainer.policy import Policy
from trainer.proof import LONGEST, plain_logprobs, record

ROWS = [{"prompt": [1, 2, 3], "completion": [4, 5, 6]}]


def test_a_merged_model_gives_the_adapters_logprobs(
    tiny_model: Path, tiny_lora_policy: Policy, tmp_path: Path
) -> None:
    policy = tiny_lora_policy
    policy.start_optimizer()
    for _ in range(5):
        logp, _ = policy.logprobs([Group([1, 2, 3], [[4, 5, 6]])], temperature=1.0)
        (-logp.mean()).backward()
        policy.update(1e-2)
    policy.save_model(tmp_path / "adapter")
    merge(tiny_model, tmp_path / "adapter", tmp_path / "merged")

    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()
    base = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    with torch.no_grad():
        wanted = policy.logprobs([Group([1, 2, 3], [[4, 5, 6]])], temperature=1.0)[0]
    torch.testing.assert_close(plain_logprobs(merged, ROWS), wanted, atol=1e-5, rtol=1e-5)
    assert (plain_logprobs(base, ROWS) - wanted).abs().max() > 1e-2
    assert AutoTokenizer.from_pretrained(tmp_path / "merged").chat_template


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_an_exported_adapter_names_its_base_model(
    tiny_lora_policy: Policy, tmp_path: Path, name: str
) -> None:
    tiny_lora_policy.save_model(tmp_path)
    assert (tmp_path / name).exists()
    assert '"base_model_name_or_path": "tiny"' in (tmp_path / "adapter_config.json").read_text()


def test_long_rows_are_proved_in_part(tiny_policy: Policy, tmp_path: Path) -> None:
    """A stock model holds the logits of a whole row: gigabytes where rows fill a context."""
    prompt, completion = [1] * 300 + [2], [3] + [4] * 300
    record(tiny_policy, [Group(prompt, [completion, [5]])], tmp_path / "proof.json")
    first, second = json.loads((tmp_path / "proof.json").read_text())
    assert first["prompt"] == second["prompt"] == prompt[-LONGEST:]
    assert (first["completion"], second["completion"]) == (completion[:LONGEST], [5])
    expected = plain_logprobs(tiny_policy.model, [first, second])
    found = torch.tensor([*first["logprobs"], *second["logprobs"]])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)

"""A sampler is given weights as the files of the model have them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from tests.trainer.test_architecture import SIZES
from trainer.loading import linear_layers
from trainer.policy import Policy

EXPERTS = {"head_dim": 16, "num_experts": 4, "moe_intermediate_size": 16}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {"tie_word_embeddings": True}),
        ("gpt_neox", {}),
        ("mixtral", {"num_local_experts": 4}),
        ("qwen3_moe", EXPERTS),
    ],
)
@pytest.mark.parametrize("rank", [0, 4])
def test_names_and_values_are_those_of_the_files(
    tmp_path: Path, kind: str, changes: dict[str, Any], rank: int
) -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SIZES | changes))
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "base")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    if rank:
        config = LoraConfig(
            r=rank, target_modules=set(linear_layers(model)), init_lora_weights=False
        )
        model = get_peft_model(model, config)
    policy = Policy(model, None, lora_rank=rank)
    given = {name: weight.clone() for name, weight in policy.sampler_weights()}
    merged = model.merge_and_unload() if rank else model
    merged.save_pretrained(tmp_path / "merged")
    files = load_file(tmp_path / "merged/model.safetensors")
    assert given.keys() == files.keys()
    for name, weight in files.items():
        torch.testing.assert_close(given[name], weight, atol=1e-6, rtol=1e-6)

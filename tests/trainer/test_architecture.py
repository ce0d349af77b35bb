"""Models that the packed forward pass is right for, and those that are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.trainer.offline_jobs import conversation, supervised_job, write_rows
from tests.trainer.reports import reports_of
from trainer.architecture import check_architecture
from trainer.errors import UnusableModel
from trainer.policy import Policy

SIZES = {
    "vocab_size": 260,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
IDS = list(range(40))
NTK = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 8,
    "long_factor": [2.0] * 8,
}


def _policy(kind: str, **changes: Any) -> Policy:
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SIZES | changes))
    return Policy(AutoModelForCausalLM.from_config(config).eval(), None, lora_rank=0)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"num_key_value_heads": 1, "attention_bias": True, "tie_word_embeddings": True}),
        ("qwen2", {}),
        ("qwen3", {"head_dim": 16}),
        ("mistral", {"sliding_window": 64}),
        ("gemma3_text", {"head_dim": 16, "sliding_window": 64}),
        ("phi3", {}),
        ("gpt_neox", {}),
        ("opt", {"ffn_dim": 96, "word_embed_proj_dim": 48}),
        ("mixtral", {}),
        ("granite", {"logits_scaling": 3.0, "residual_multiplier": 0.2}),
        ("cohere", {"logit_scale": 0.3}),
        ("llama", {"rope_parameters": NTK, "max_position_embeddings": 60}),
        ("phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 60}),
    ],
)
def test_plain_decoders_pass(kind: str, changes: dict[str, Any]) -> None:
    check_architecture(_policy(kind, **changes), IDS, longest=60)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("mistral", {"sliding_window": 50}, "sees 50 tokens back, and rows have up to 60"),
        ("gemma3_text", {"head_dim": 16, "sliding_window": 50}, "sees 50 tokens back"),
        ("gemma2", {"head_dim": 16}, "do not take packed rows .*softcap"),
        ("gpt_oss", {"head_dim": 16}, "do not take packed rows .*s_aux"),
        ("mamba", {"state_size": 4}, "do not take packed rows"),
        ("rwkv", {"attention_hidden_size": 48}, "packed rows differ"),
        ("lfm2", {"full_attn_idxs": [1]}, "packed rows differ"),
        ("bert", {}, "packed rows differ"),
        ("llama", {"rope_parameters": NTK, "max_position_embeddings": 50}, "beyond 50 tokens"),
        (
            "phi3",
            {"rope_parameters": LONG, "original_max_position_embeddings": 50},
            "beyond 50 tokens.* rows have up to 60 tokens",
        ),
    ],
)
def test_others_are_refused(kind: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UnusableModel, match=f"Models of type {kind} cannot .*{said}"):
        check_architecture(_policy(kind, **changes), IDS, longest=60)


def test_a_layer_that_only_raises_is_named_by_its_error(
    tiny_lora_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(tiny_lora_policy, "logprobs", forward)
    with pytest.raises(UnusableModel, match=r"packed rows \(NotImplementedError\)"):
        check_architecture(tiny_lora_policy, IDS, longest=60)


def test_a_biased_head_is_refused() -> None:
    policy = _policy("phi")
    with torch.no_grad():
        policy.model.lm_head.bias.normal_(std=0.1)
    with pytest.raises(UnusableModel, match=r"Models of type phi cannot .*packed rows differ"):
        check_architecture(policy, IDS, longest=60)


def test_weights_in_bfloat16_come_back_to_the_bit(tiny_lora_policy: Policy) -> None:
    """And are compared in float32, where the two ways agree far better."""
    model = tiny_lora_policy.model.bfloat16()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    check_architecture(tiny_lora_policy, IDS, longest=60)
    after = model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert {t.dtype for t in after.values()} == {torch.bfloat16}


@pytest.fixture
def short_sighted(tiny_model: Path, tmp_path: Path) -> Path:
    """A model that is said to see 60 tokens back."""
    path = shutil.copytree(tiny_model, tmp_path / "short-sighted")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"sliding_window": 60}))
    return path


def _model(path: Path) -> dict[str, Any]:
    return {"id": "tiny", "path": str(path), "context_tokens": 200, "chat_template": None}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("train", ["x" * 60]),
        ("validation", ["x" * 60]),
        ("warm_start", ["hi", "x" * 60]),
    ],
)
def test_what_is_longer_than_the_window_is_refused_in_every_file(
    make_job: Callable[..., Path], short_sighted: Path, name: str, said: list[str]
) -> None:
    job_dir = make_job(model=_model(short_sighted))
    write_rows(job_dir / f"data/{name}.jsonl", [conversation(*said)])
    with pytest.raises(UnusableModel, match="sees 60 tokens back, and rows have up to"):
        reports_of(job_dir)


@pytest.mark.parametrize("name", ["train", "validation"])
def test_a_supervised_row_longer_than_the_window_is_refused(
    make_job: Callable[..., Path], short_sighted: Path, name: str
) -> None:
    job_dir = supervised_job(make_job, model=_model(short_sighted))
    write_rows(job_dir / f"data/{name}.jsonl", [conversation("hi", "x" * 60)])
    with pytest.raises(UnusableModel, match="sees 60 tokens back, and rows have up to"):
        reports_of(job_dir)

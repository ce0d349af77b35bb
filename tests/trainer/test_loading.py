"""What is loaded, what is trained of it, and what is refused with a sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoTokenizer, LlavaConfig, T5Config

from trainer.errors import UnusableModel
from trainer.export import merge
from trainer.loading import BaseSpec, load_model, load_tokenizer
from trainer.policy import Policy
from trainer.spec import AdapterSpec


def _adapter(rank: int, targets: Any = "all-linear", **changes: Any) -> AdapterSpec:
    values = {"alpha": 2.0 * rank or 1.0, "quantization": "none", **changes}
    return AdapterSpec(rank=rank, targets=targets, **values)


def _load(path: Path, adapter: AdapterSpec, init: Path | None = None) -> Policy:
    return Policy.load(path, name="tiny", init=init, dtype=torch.float32, adapter=adapter, seed=0)


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return shutil.copytree(tiny_model, tmp_path / "copy")


def test_named_layers_alone_carry_the_adapter(tiny_model: Path) -> None:
    policy = _load(tiny_model, _adapter(4, ["q_proj", "layers.1.mlp.up_proj"]))
    found = {
        name.split(".lora_")[0].removeprefix("base_model.model.model.") for name in policy.trainable
    }
    attention = {f"layers.{layer}.self_attn.q_proj" for layer in (0, 1)}
    assert found == attention | {"layers.1.mlp.up_proj"}


def test_all_linear_leaves_the_head_and_the_embeddings_out(tiny_model: Path) -> None:
    policy = _load(tiny_model, _adapter(4))
    layers = {name.split(".lora_")[0].rsplit(".", 1)[1] for name in policy.trainable}
    attention = {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert layers == attention | {"gate_proj", "up_proj", "down_proj"}


@pytest.mark.parametrize("target", ["c_attn", "lm_head", "embed_tokens", "proj"])
def test_a_target_that_is_no_linear_layer_is_refused_with_those_there_are(
    tiny_model: Path, target: str
) -> None:
    with pytest.raises(UnusableModel, match=f"no linear layer '{target}'") as caught:
        _load(tiny_model, _adapter(4, ["q_proj", target]))
    assert caught.value.message.endswith(
        "may name: down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj."
    )


def test_an_adapter_goes_on_as_it_is_or_not_at_all(tiny_model: Path, tmp_path: Path) -> None:
    first = _load(tiny_model, _adapter(4, ["q_proj"]))
    first.save_model(tmp_path)
    second = _load(tiny_model, _adapter(4, ["q_proj"]), init=tmp_path)
    assert second.masters.keys() == first.masters.keys()
    assert all(torch.equal(second.masters[n], m) for n, m in first.masters.items())
    for other in (
        _adapter(8, ["q_proj"], alpha=8.0),
        _adapter(4, ["q_proj"], alpha=4.0),
        _adapter(4, ["q_proj", "k_proj"]),
        _adapter(4),
    ):
        with pytest.raises(UnusableModel, match="has rank 4 and alpha 8 on q_proj, and cannot be"):
            _load(tiny_model, other, init=tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (T5Config(), r"tiny \(t5\) has an encoder and a decoder"),
        (LlavaConfig(), r"tiny \(llava\) reads more than text"),
        (AutoConfig.for_model("vit"), r"tiny \(vit\) is no causal language model"),
    ],
)
def test_a_model_of_another_kind_is_refused(copy: Path, config: Any, said: str) -> None:
    config.save_pretrained(copy)
    with pytest.raises(UnusableModel, match=said):
        _load(copy, _adapter(0))


def test_a_model_with_code_of_its_own_is_refused(copy: Path) -> None:
    config = {"model_type": "theirs", "auto_map": {"AutoConfig": "configuration.TheirConfig"}}
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnusableModel, match="bring their own code are not loaded"):
        _load(copy, _adapter(0))


def test_weights_that_are_quantized_are_not_read_as_whole_ones(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    scheme = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    (copy / "config.json").write_text(json.dumps(config | {"quantization_config": scheme}))
    with pytest.raises(UnusableModel, match=r"weights of model tiny are quantized\. Choose"):
        _load(copy, _adapter(0))


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1", "header too large"),
        ("config.json", {"hidden_size": "wide"}, "configuration of model tiny cannot be read"),
        ("config.json", {"num_attention_heads": 5}, "configuration of model tiny cannot be read"),
        ("config.json", {"hidden_act": "none such"}, "Model tiny cannot be loaded: 'none such'"),
    ],
)
def test_files_that_are_damaged_are_named(copy: Path, file: str, content: Any, said: str) -> None:
    if isinstance(content, dict):
        content = json.dumps(json.loads((copy / file).read_text()) | content)
    (copy / file).write_text(content)
    with pytest.raises(UnusableModel, match=said):
        _load(copy, _adapter(0))


def test_a_folder_without_weights_is_refused(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(UnusableModel, match=r"tiny cannot be loaded: .*model\.safetensors"):
        _load(copy, _adapter(0))


def test_a_tokenizer_of_another_model_is_refused(copy: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.add_tokens(["<one>", "<two>", "<three>"])
    tokenizer.save_pretrained(copy)
    with pytest.raises(UnusableModel, match="knows 262 tokens, but the model only 260"):
        _load(copy, _adapter(0))


def test_a_model_that_never_ends_is_refused(copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        content = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps(content | {"eos_token_id": None, "eos_token": None}))
    with pytest.raises(UnusableModel, match="which token ends an answer"):
        _load(copy, _adapter(0))


@pytest.mark.parametrize("rank", [0, 4])
def test_an_export_says_where_answers_end_also_of_a_base_with_settings_at_odds(
    copy: Path, tmp_path: Path, rank: int
) -> None:
    own = json.loads((copy / "generation_config.json").read_text())
    at_odds = own | {"temperature": 0.6, "do_sample": False, "eos_token_id": [3]}
    (copy / "generation_config.json").write_text(json.dumps(at_odds))
    _load(copy, _adapter(rank)).save_model(tmp_path / "out")
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert written["eos_token_id"] == [3, 257]
    assert written["pad_token_id"] == 257
    if rank:
        merge(copy, tmp_path / "out", tmp_path / "merged")
        merged = json.loads((tmp_path / "merged" / "generation_config.json").read_text())
        assert merged["eos_token_id"] == [3, 257]


def test_weights_that_are_missing_are_not_drawn_at_random(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UnusableModel, match=r"1 are missing or .*1\.mlp\.up_proj\.weight among"):
        _load(copy, _adapter(0))


def test_weights_of_another_shape_are_refused(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    with pytest.raises(UnusableModel, match=r"do not fit its config.json: 6 are missing"):
        _load(copy, _adapter(0))


def test_a_model_without_a_chat_template_needs_one_of_the_operator(
    copy: Path, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.chat_template = None
    (copy / "chat_template.jinja").unlink()
    tokenizer.save_pretrained(copy)
    with pytest.raises(UnusableModel, match="has no chat template"):
        load_tokenizer(BaseSpec("tiny", copy, None))
    template = tmp_path / "own.jinja"
    template.write_text("{% for m in messages %}<{{ m.content }}><|im_end|>{% endfor %}")
    spec = BaseSpec("tiny", copy, template)
    model, tokenizer = load_model(spec, init=None, dtype=torch.float32, adapter=_adapter(0), seed=0)
    Policy(model, tokenizer, lora_rank=0).save_model(tmp_path / "export")
    exported = AutoTokenizer.from_pretrained(tmp_path / "export")
    said = exported.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert said == "<hi><|im_end|>"


def test_a_folder_without_a_tokenizer_is_named(copy: Path) -> None:
    for file in copy.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(UnusableModel, match=f"cannot be loaded from {copy}"):
        _load(copy, _adapter(0))


def test_four_bits_need_an_adapter_and_their_package(tiny_model: Path) -> None:
    with pytest.raises(UnusableModel, match="cannot be trained itself"):
        _load(tiny_model, _adapter(0, quantization="nf4"))
    with pytest.raises(UnusableModel, match="needs the package bitsandbytes"):
        _load(tiny_model, _adapter(4, quantization="nf4"))

"""What the files of a base model say, before anything of it is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.registry import BaseModel
from tests.fakes.tiny_model import make_tiny_model
from workers.model_files import check_base, check_targets
from workers.refused import Refused


def base(folder: Path, **fields: Any) -> BaseModel:
    """A base model in this folder."""
    return BaseModel(id="b", path=folder, context_tokens=8, owned_by="x", created=1, **fields)


def asked(targets: Any, rank: int = 4) -> dict[str, Any]:
    """Hyperparameters with these targets."""
    return {"lora_targets": targets, "lora_rank": rank}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    """A tiny Llama."""
    return base(make_tiny_model(tmp_path_factory.mktemp("tiny")))


def test_a_causal_model_with_a_template_passes(tiny: BaseModel) -> None:
    check_base(tiny)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"is_encoder_decoder": True}, "has an encoder and a decoder"),
        ({"vision_config": {}}, "reads more than text"),
        ({"audio_config": {}}, "reads more than text"),
        ({"quantization_config": {"quant_method": "fp8"}}, "is quantized already"),
        ({}, "has no chat template"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(Refused, match=f"Model b {said}") as caught:
        check_base(base(tmp_path))
    assert (caught.value.code, caught.value.param) == ("model_not_trainable", "model")


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "model-1.safetensors", "model-2.safetensors"]
)
@pytest.mark.parametrize("content", ["version https://git-lfs.github.com/spec/v1", "{"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: str) -> None:
    for file in ("config.json", "tokenizer_config.json"):
        (tmp_path / file).write_text('{"chat_template": "{{ messages }}"}')
    (tmp_path / name).write_text(content)
    with pytest.raises(Refused, match=f"Model b has a damaged file {name}; choose") as caught:
        check_base(base(tmp_path))
        check_targets(base(tmp_path), asked(["q_proj"]), method="supervised")
    assert caught.value.code == "model_not_trainable"


@pytest.mark.parametrize("longest", ["max_position_embeddings", "n_positions"])
def test_a_context_longer_than_the_models_positions_is_refused(
    tmp_path: Path, longest: str
) -> None:
    def check(**config: Any) -> None:
        (tmp_path / "config.json").write_text(json.dumps(config))
        check_base(base(tmp_path))

    check(**{longest: 8})
    check(**{longest: 7}, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    for more in ({}, {"rope_scaling": None}, {"rope_parameters": {"rope_type": "default"}}):
        with pytest.raises(Refused, match="has 7 positions, fewer than the 8 context_tokens"):
            check(**{longest: 7}, **more)


def test_a_template_of_the_operator_will_do(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text("{}")
    template = tmp_path / "own.jinja"
    template.write_text("{{ messages }}")
    check_base(base(tmp_path, chat_template=template))


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj"], ["self_attn.k_proj", "up_proj"]])
def test_layers_that_are_there_may_be_named(tiny: BaseModel, targets: Any) -> None:
    check_targets(tiny, asked(targets), method="supervised")


@pytest.mark.parametrize("target", ["c_attn", "proj", "lm_head", "embed_tokens"])
def test_a_layer_that_is_not_there_is_refused_with_those_that_are(
    tiny: BaseModel, target: str
) -> None:
    with pytest.raises(Refused, match=f"no layer '{target}'") as caught:
        check_targets(tiny, asked(["q_proj", target]), method="dpo")
    assert caught.value.message.endswith(
        "may name down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj."
    )
    assert caught.value.param == "method.dpo.hyperparameters.lora_targets"


def test_without_an_adapter_targets_do_not_matter(tiny: BaseModel) -> None:
    check_targets(tiny, asked(["c_attn"], rank=0), method="dpo")

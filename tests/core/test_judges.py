"""The judges file, the base models as judges, and who gets which key."""

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from core.errors import ConfigurationError, InvalidRequest
from core.judges import JudgeBook, served
from core.registry import BaseModel, Registry
from core.settings import Settings
from graders.judges.config import JudgeConfig
from graders.spec import parse_grader
from tests.graders.judging import score_model

SETTINGS_MD = Path(__file__).parents[2] / "docs" / "settings.md"
FILE = """
[[judges]]
model = "gpt-4.1-mini"
base_url = "https://api.openai.com/v1/"
api_key_env = "OPENAI_API_KEY"
reads = ["text", "image"]
input_price = 0.4
output_price = 1.6

[[judges]]
model = "gpt-*"
base_url = "http://10.0.0.7:8000/v1"
api_key_env = "OTHER_KEY"

[[judges]]
model = "embedder"
base_url = "http://10.0.0.8:8000/v1"
does = ["embeddings"]
"""
KEYS = {"OPENAI_API_KEY": "sk-openai", "OTHER_KEY": "sk-other"}


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    model = BaseModel("base-1", tmp_path, 512, "lab", 1, aliases=("base",))
    return Registry([model], source=tmp_path / "models.toml")


def book(tmp_path: Path, registry: Registry, text: str = FILE, **settings: str) -> JudgeBook:
    path = tmp_path / "judges.toml"
    path.write_text(text)
    given = Settings(judges_file=path, serving_token="serving-secret", **settings)
    return JudgeBook.load(given, registry, KEYS)


def test_file_and_base_models_are_judges(tmp_path: Path, registry: Registry) -> None:
    config = book(tmp_path, registry).config
    assert [j.model for j in config.judges] == [
        *("gpt-4.1-mini", "gpt-*", "embedder"),
        *("base-1", "base"),
    ]
    assert config.judges[0].api_key == "sk-openai"
    served = config.judges[4]
    assert (served.base_url, served.upstream) == ("http://127.0.0.1:8100/v1", "base-1")
    assert served.headers["x-rft-token"] == "serving-secret"
    target = json.loads(served.headers["x-rft-model"])
    assert target == {"base": "base-1", "artifact": None, "kind": None}


def test_without_a_file_only_base_models_are(registry: Registry) -> None:
    names = [judge.model for judge in JudgeBook.load(Settings(), registry, {}).config.judges]
    assert names == ["base-1", "base"]


def config_for(judges: JudgeBook, grader: dict[str, object]) -> str:
    return judges.environment(parse_grader(grader).wire())["RFT_GRADER_SERVICES"]


def test_a_grader_gets_the_keys_of_its_own_judges_only(tmp_path: Path, registry: Registry) -> None:
    judges = book(tmp_path, registry)
    exact = config_for(judges, score_model(model="gpt-4.1-mini"))
    assert "sk-openai" in exact
    assert "sk-other" not in exact and "serving-secret" not in exact
    pattern = config_for(judges, score_model(model="gpt-5"))
    assert "sk-other" in pattern and "sk-openai" not in pattern
    children = {"a": score_model(model="base"), "b": score_model(model="gpt-5")}
    multi = {"type": "multi", "name": "m", "graders": children, "calculate_output": "a + b"}
    both = config_for(judges, multi)
    assert "serving-secret" in both and "sk-other" in both and "sk-openai" not in both
    plain = {
        "type": "string_check",
        "name": "s",
        "operation": "eq",
        "input": "a",
        "reference": "a",
    }
    assert '"judges":[]' in config_for(judges, plain)


def test_keys_do_not_show(tmp_path: Path, registry: Registry) -> None:
    shown = repr(book(tmp_path, registry).config)
    assert "sk-openai" not in shown and "serving-secret" not in shown


@pytest.mark.parametrize(
    ("grader", "param", "reason"),
    [
        (
            score_model(model="claude"),
            "g.model",
            "Unknown judge 'claude'; known: base, base-1, gpt-*, gpt-4.1-mini.",
        ),
        (
            {
                "type": "multi",
                "name": "m",
                "graders": {"a": score_model(model="gpt-4.1-mini"), "b": score_model(model="x")},
                "calculate_output": "a + b",
            },
            "g.graders.b.model",
            "Unknown judge 'x'",
        ),
        (
            score_model(
                model="gpt-5",
                input=[
                    {
                        "role": "user",
                        "content": {"type": "input_image", "image_url": "https://x.example/"},
                    }
                ],
            ),
            "g.model",
            "reads text only",
        ),
        (score_model(model="embedder"), "g.model", "Unknown judge 'embedder'"),
        ({"type": "endpoint", "name": "e", "url": "https://10.0.0.1/"}, "g.url", "private"),
        ({"type": "endpoint", "name": "e", "url": "http://a.example/"}, "g.url", "https"),
        (
            {
                "type": "text_similarity",
                "name": "t",
                "evaluation_metric": "cosine",
                "input": "a",
                "reference": "b",
            },
            "g.embedding_model",
            "Unknown embeddings model 'text-embedding-3-large'; known: embedder, gpt-*",
        ),
    ],
)
def test_what_a_grader_cannot_have(
    grader: dict[str, object], param: str, reason: str, tmp_path: Path, registry: Registry
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        book(tmp_path, registry).check(parse_grader(grader), param="g")
    assert caught.value.param == param
    assert reason in caught.value.message


def test_operator_allows_hosts(tmp_path: Path, registry: Registry) -> None:
    judges = book(tmp_path, registry, outbound_hosts=" grader.internal , 10.0.0.1:8080 ")
    for url in ("http://grader.internal/x", "https://10.0.0.1:8080/"):
        judges.check(parse_grader({"type": "endpoint", "name": "e", "url": url}), param="g")


def test_prices(tmp_path: Path, registry: Registry) -> None:
    judges = book(tmp_path, registry)
    cost = judges.price("gpt-4.1-mini", prompt_tokens=1_000_000, completion_tokens=500_000)
    assert cost == pytest.approx(1.2)
    assert judges.price("gpt-5", prompt_tokens=1, completion_tokens=1) is None


WRONG = [
    ("[[judges]", "cannot be read"),
    ('model = "x"', "may hold \\[\\[judges\\]\\] entries only"),
    ("[[judges]]\nmodel = 'x'", "Judge x in .* base_url: Field required"),
    ("[[judges]]\nbase_url = 'https://a.example'", "without a model"),
    ("[[judges]]\nmodel = 'x'\nbase_url = 'a.example'", "it must be a URL"),
    ("[[judges]]\nmodel = 'x'\nbase_url = 'https://a.example'\nurl = 'x'", "url: Extra inputs"),
    ("[[judges]]\nmodel = 'x'\nbase_url = 'https://a.example'\napi_key = 'sk-x'", "holds a secret"),
    (
        "[[judges]]\nmodel = 'x'\nbase_url = 'https://a.example'\napi_key_env = 'NO_KEY'",
        "takes its key from NO_KEY, which is not set",
    ),
    (
        "[[judges]]\nmodel = 'x*'\nbase_url = 'https://a.example'\nupstream = 'y'",
        "leave 'upstream' out",
    ),
    ("[[judges]]\nmodel = 'x'\nbase_url = 'https://a.example'\nattempts = 0", "attempts: "),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_wrong_files_are_named(text: str, reason: str, tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        book(tmp_path, registry, text)
    assert "judges.toml" in caught.value.message
    assert "sk-x" not in caught.value.message


@pytest.mark.parametrize("key", ["sk-x\n", "sk-x\r", " sk-x", "sk-é", "sk-x\nX: y"])
def test_key_that_cannot_be_sent_is_refused_unseen(
    key: str, tmp_path: Path, registry: Registry
) -> None:
    path = tmp_path / "judges.toml"
    path.write_text(WRONG[2][0] + "\nbase_url = 'https://a.example'\napi_key_env = 'KEY'")
    with pytest.raises(ConfigurationError, match=r"api_key: .* printable ASCII") as caught:
        JudgeBook.load(Settings(judges_file=path), registry, {"KEY": key})
    assert "sk-" not in caught.value.message + str(caught.value.__cause__)
    with pytest.raises(ValidationError) as token:
        served(Settings(serving_token=key), registry)
    assert "sk-" not in str(token.value)


def test_missing_file_is_named(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(ConfigurationError, match="does not exist; set RFT_JUDGES_FILE"):
        JudgeBook.load(Settings(judges_file=tmp_path / "none.toml"), registry, {})


def test_every_field_of_the_file_is_documented() -> None:
    section = SETTINGS_MD.read_text().split("## Judges")[1]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    fields = set(JudgeConfig.model_fields) - {"api_key", "headers"}
    assert documented == fields | {"api_key_env"}


def test_example_of_the_documentation_can_be_read(tmp_path: Path, registry: Registry) -> None:
    [text] = re.findall(r"```toml\n(.*?)```", SETTINGS_MD.read_text(), re.DOTALL)
    assert book(tmp_path, registry, text).config.judges[1].max_concurrency == 64

"""`method`: what is accepted, what is refused in which words, and what is documented."""

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, BeforeValidator, ValidationError

from core.errors import InvalidRequest, UnsupportedMethod
from core.methods import (
    Hyperparameters,
    Method,
    Preference,
    PreferenceHyperparameters,
    Range,
    Reinforcement,
    ReinforcementLimits,
    Supervised,
    SupervisedHyperparameters,
    WarmStart,
    block_of,
    normalise,
    reinforcement_of,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "hyperparameters.md"
GRADER = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


def method(**block: Any) -> dict[str, Any]:
    return {"type": "reinforcement", "reinforcement": {"grader": GRADER, **block}}


def section(title: str) -> dict[str, tuple[str, str]]:
    """One table of the document: field → allowed values, meaning."""
    text = DOCUMENT.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \| (.*?) \|$", text, re.MULTILINE)
    return {name: (allowed, meaning) for name, allowed, meaning in found}


def allowed(model: type[BaseModel], name: str) -> str:
    field = model.model_fields[name]
    for each in field.metadata:
        if isinstance(each, BeforeValidator) and isinstance(each.func, Range):
            return f"`auto` or {each.func.text()}"
    if field.annotation is bool:
        return "`true` or `false`"
    kinds = get_args(field.annotation)
    inner = [get_args(kind) if get_origin(kind) is Literal else (kind,) for kind in kinds]
    words = [f"`{value}`" for values in inner for value in values if isinstance(value, str)]
    if any(get_origin(kind) is list for kind in kinds):
        words.append("a list of names")
    return ", ".join(words) or "text"


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("Hyperparameters", Hyperparameters),
        ("Warm start", WarmStart),
        ("Limits", ReinforcementLimits),
        ("Supervised", SupervisedHyperparameters),
        ("Preferences", PreferenceHyperparameters),
    ],
)
def test_every_field_is_documented_as_it_is(title: str, model: type[BaseModel]) -> None:
    assert section(title) == {
        name: (allowed(model, name), field.description)
        for name, field in model.model_fields.items()
    }


def test_every_field_of_the_block_is_documented() -> None:
    assert {name: meaning for name, (_, meaning) in section("The block").items()} == {
        name: field.description for name, field in Reinforcement.model_fields.items()
    }


def test_a_bare_grader_is_enough() -> None:
    shown = normalise(Method.model_validate(method()))
    assert shown["type"] == "reinforcement"
    assert shown["reinforcement"]["grader"] == GRADER
    assert shown["reinforcement"]["hyperparameters"]["batch_size"] == "auto"
    assert set(shown["reinforcement"]) == {"grader", "hyperparameters", "limits"}


def test_what_is_shown_can_be_sent_again() -> None:
    block = {"response_format": FORMAT, "warm_start": {"file": "file-a", "epochs": 2}}
    shown = normalise(Method.model_validate(method(**block)))
    assert normalise(Method.model_validate(shown)) == shown


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("batch_size", [1, 256, 8.0, "auto"], [0, 257, 1.5, True, "8", None]),
        ("learning_rate_multiplier", [0.1, 100], [0, -1, float("nan"), float("inf"), "1"]),
        ("n_epochs", [1, 50], [0, 51]),
        ("compute_multiplier", [0.0001, 10], [1e-5, 10.1]),
        ("eval_interval", [1, 10_000], [0]),
        ("eval_samples", [1], [0]),
        ("group_size", [2, 256], [1, 257]),
        ("max_completion_tokens", [1, 100_000], [0]),
        ("temperature", [0.01, 2], [0, 2.1]),
        ("learning_rate", [1e-9], [0]),
        ("kl_coefficient", [0, 10], [-0.1, 10.1]),
        ("lora_rank", [0, 1, 512], [-1, 513]),
        ("max_steps", [1], [0]),
        ("reasoning_effort", ["default", "low", "medium", "high"], ["auto", "none"]),
        ("algorithm", ["auto", "grpo", "dr_grpo", "reinforce++", "ppo"], ["reinforce", "trpo"]),
        ("lora_targets", ["auto", "all-linear", ["q_proj", "v_proj"]], ["q_proj", 3, [3], []]),
        ("clip_low", [0, 1], [-0.1, 1.1]),
        ("clip_high", [0.01, 3], [0]),
        ("dual_clip", [0, 1.1, 3], [1, 0.5]),
        ("resample_rounds", [0, 16], [-1, 17]),
        ("max_staleness", [0, 1], [2]),
        ("mask_truncated", [True, False], ["auto", 3]),
    ],
)
def test_ranges(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(Hyperparameters.model_validate({name: value}), name) == value
    for value in bad:
        with pytest.raises(ValidationError):
            Hyperparameters.model_validate({name: value})


def test_a_refusal_says_the_whole_range() -> None:
    with pytest.raises(ValidationError, match="'auto' or an integer from 1 to 256, not 0"):
        Hyperparameters(batch_size=0)
    with pytest.raises(ValidationError, match="'auto' or a number above 0 and at most 2, not 3"):
        Hyperparameters(temperature=3)
    with pytest.raises(ValidationError, match="'auto' or 0 or an integer from 1 to 512, not -1"):
        Hyperparameters(lora_rank=-1)


@pytest.mark.parametrize("block", [{"hyperparameters": {"etest_samples": 4}}, {"grdaer": {}}])
def test_unknown_fields_are_refused(block: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        Method.model_validate(method(**block))


def test_a_bad_grader_is_refused() -> None:
    with pytest.raises(ValidationError, match="operation"):
        Method.model_validate(method(grader={**GRADER, "operation": "equals"}))


@pytest.mark.parametrize("warm_start", [{}, {"file": "file-a", "reference_field": "answer"}])
def test_a_warm_start_has_one_source(warm_start: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="exactly one of 'file' and 'reference_field'"):
        Method.model_validate(method(warm_start=warm_start))


@pytest.mark.parametrize(
    ("response_format", "said"),
    [
        ({"type": "text"}, "must be 'json_schema'"),
        ({"type": "json_schema"}, "an object with 'name' and 'schema'"),
        ({"type": "json_schema", "json_schema": {"schema": {}}}, "json_schema.name"),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": 3}}},
            "type",
        ),
        (
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "o",
                    "schema": {"properties": {"a": {"$ref": "http://169.254.169.254/latest"}}},
                },
            },
            "169.254.169.254",
        ),
    ],
)
def test_a_bad_response_format_is_refused(response_format: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        Method.model_validate(method(response_format=response_format))


def test_unused_blocks_are_ignored() -> None:
    both = {**method(), "supervised": {"anything": 1}, "dpo": None}
    assert normalise(Method.model_validate(both)) == normalise(Method.model_validate(method()))
    other = {"type": "supervised", "supervised": {}, "reinforcement": {"nonsense": 1}}
    assert Method.model_validate(other).reinforcement is None


@pytest.mark.parametrize(
    ("kind", "block", "named"),
    [("supervised", Supervised, {}), ("dpo", Preference, {"beta": "auto", "loss": "auto"})],
)
def test_offline_methods_need_no_block(
    kind: str, block: type[BaseModel], named: dict[str, Any]
) -> None:
    bare = Method.model_validate({"type": kind})
    assert block_of(bare) == block()
    shown = normalise(bare)
    assert shown[kind]["hyperparameters"].items() >= {"n_epochs": "auto", **named}.items()
    assert normalise(Method.model_validate(shown)) == shown


def test_the_sdks_hyperparameters_are_taken() -> None:
    sent = {"batch_size": 4, "learning_rate_multiplier": 0.5, "n_epochs": 2}
    for kind, more in (("supervised", {}), ("dpo", {"beta": 0.3})):
        made = Method.model_validate({"type": kind, kind: {"hyperparameters": {**sent, **more}}})
        assert block_of(made).hyperparameters.model_dump(exclude_unset=True) == {**sent, **more}


@pytest.mark.parametrize("beta", [0, -1, 2.1, "0.1"])
def test_beta_has_openais_range(beta: Any) -> None:
    with pytest.raises(ValidationError, match="a number above 0 and at most 2"):
        PreferenceHyperparameters(beta=beta)
    with pytest.raises(ValidationError, match="extra_forbidden"):
        SupervisedHyperparameters.model_validate({"beta": 0.1})


@pytest.mark.parametrize("kind", ["supervised", "dpo"])
def test_what_needs_a_grader_refuses_methods_without_one(kind: str) -> None:
    with pytest.raises(UnsupportedMethod, match="reinforcement") as refusal:
        reinforcement_of(Method.model_validate({"type": kind}))
    assert (refusal.value.code, refusal.value.param) == ("unsupported_method", "method.type")


def test_a_missing_block_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"method\.reinforcement") as refusal:
        reinforcement_of(Method(type="reinforcement"))
    assert refusal.value.code == "missing_required_parameter"

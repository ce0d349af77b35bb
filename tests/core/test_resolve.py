"""`auto` becomes the documented value, and a shown job can be sent again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import InvalidRequest
from core.methods import Method, algorithms
from core.registry import BaseModel
from core.resolve import check_model, cut_short, resolve, unused_adapter

MODEL = BaseModel("base", Path("base"), context_tokens=8192, owned_by="us", created=1)
GRADER = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}


def resolved(
    hyperparameters: dict[str, Any] | None = None,
    *,
    warm_start: dict[str, Any] | None = None,
    train_rows: int = 100,
    validation_rows: int = 40,
    warm_rows: int = 64,
    model: BaseModel = MODEL,
) -> dict[str, Any]:
    block = {"grader": GRADER, "hyperparameters": hyperparameters or {}, "warm_start": warm_start}
    shown = resolve(
        Method.model_validate({"type": "reinforcement", "reinforcement": block}),
        train_rows=train_rows,
        validation_rows=validation_rows,
        warm_rows=warm_rows,
        model=model,
    )
    again = resolve(
        Method.model_validate(shown),
        train_rows=train_rows,
        validation_rows=validation_rows,
        warm_rows=warm_rows,
        model=model,
    )
    assert again == shown
    result: dict[str, Any] = shown["reinforcement"]
    return result


def hyper(values: dict[str, Any] | None = None, **context: Any) -> dict[str, Any]:
    result: dict[str, Any] = resolved(values, **context)["hyperparameters"]
    return result


def test_all_automatic() -> None:
    assert hyper() == {
        "batch_size": 8,
        "learning_rate_multiplier": 1.0,
        "n_epochs": 1,
        "reasoning_effort": "default",
        "compute_multiplier": 1.0,
        "eval_interval": 3,
        "eval_samples": 20,
        "algorithm": "grpo",
        "group_size": 8,
        "max_completion_tokens": 256,
        "temperature": 1.0,
        "learning_rate": 1e-4,
        "kl_coefficient": 0.0,
        "lora_rank": 16,
        "lora_alpha": 32.0,
        "lora_targets": "all-linear",
        "quantization": "none",
        "max_steps": 13,
        "clip_low": 0.2,
        "clip_high": 0.2,
        "dual_clip": 0.0,
        "cispo_weight_cap": 5.0,
        "sapo_temperature_positive": 1.0,
        "sapo_temperature_negative": 1.05,
        "kl_estimator": "k3",
        "kl_placement": "loss",
        "sampler_correction": "token_truncate",
        "correction_low": 0.0,
        "correction_high": 2.0,
        "mask_truncated": True,
        "overlong_buffer_tokens": 0,
        "overlong_penalty": 1.0,
        "resample_rounds": 0,
        "rollout_epochs": 1,
        "minibatches": 1,
        "max_staleness": 0,
        "discount": 1.0,
        "gae_lambda": 1.0,
        "critic_learning_rate": 1e-4,
        "value_clip": 0.2,
    }


@pytest.mark.parametrize(
    ("algorithm", "own"),
    [
        ("dapo", {"clip_high": 0.28, "resample_rounds": 3, "overlong_buffer_tokens": 51}),
        ("gspo", {"clip_low": 3e-4, "clip_high": 4e-4}),
        ("rloo", {"kl_placement": "reward", "kl_estimator": "k1"}),
        ("ppo", {"kl_placement": "reward", "kl_estimator": "k1", "gae_lambda": 0.95}),
    ],
)
def test_an_algorithm_brings_its_own_values(algorithm: str, own: dict[str, Any]) -> None:
    automatic = hyper({"algorithm": algorithm})
    assert automatic.items() >= own.items()
    others = {name: value for name, value in automatic.items() if name not in own}
    assert others.items() <= {**hyper(), "algorithm": algorithm}.items()


@pytest.mark.parametrize(
    ("correction", "bounds"),
    [("icepop", (0.5, 5.0)), ("geometric_mask", (0.99, 1.01)), ("sequence_mask", (0.0, 2.0))],
)
def test_a_correction_brings_its_bounds(correction: str, bounds: tuple[float, float]) -> None:
    values = hyper({"sampler_correction": correction})
    assert (values["correction_low"], values["correction_high"]) == bounds


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, []),
        ({"cispo_weight_cap": 3.0}, ["cispo_weight_cap"]),
        ({"algorithm": "cispo", "cispo_weight_cap": 3.0}, []),
        ({"algorithm": "cispo", "clip_high": 0.3}, ["clip_high"]),
        ({"algorithm": "sapo", "discount": 0.9, "value_clip": 0.1}, ["discount", "value_clip"]),
        ({"algorithm": "ppo", "discount": 0.9, "value_clip": 0.1, "rollout_epochs": 2}, []),
        ({"sampler_correction": "none", "correction_high": 3.0}, ["correction_high"]),
        ({"sampler_correction": "none"}, []),
        ({"clip_high": 0.3}, ["clip_high"]),
        ({"clip_high": 0.3, "minibatches": 2}, []),
        ({"algorithm": "ppo", "value_clip": 0.1}, ["value_clip"]),
        ({"kl_estimator": "k2", "overlong_penalty": 2.0}, ["kl_estimator", "overlong_penalty"]),
        ({"kl_estimator": "k2", "kl_coefficient": 0.1}, []),
        ({"algorithm": "dapo", "overlong_penalty": 2.0}, []),
    ],
)
def test_what_has_no_effect_is_said(given: dict[str, Any], named: list[str]) -> None:
    said = algorithms.unused(hyper(given))
    assert [sentence.split()[0] for sentence in said] == named


def test_explicit_values_stay() -> None:
    given = {
        "batch_size": 4,
        "learning_rate_multiplier": 3.0,
        "n_epochs": 2,
        "reasoning_effort": "default",
        "compute_multiplier": 2.0,
        "eval_interval": 7,
        "eval_samples": 5,
        "algorithm": "dr_grpo",
        "group_size": 6,
        "max_completion_tokens": 99,
        "temperature": 0.7,
        "learning_rate": 5e-6,
        "kl_coefficient": 0.1,
        "lora_rank": 0,
        "max_steps": 9,
    }
    assert hyper(given).items() >= given.items()


@pytest.mark.parametrize(
    ("given", "rows", "epochs", "steps"),
    [
        ({}, 100, 1, 13),
        ({"n_epochs": 3}, 100, 3, 38),
        ({"max_steps": 5}, 100, 1, 5),
        ({"max_steps": 30}, 100, 3, 30),
        ({"max_steps": 5, "n_epochs": 3}, 100, 3, 5),
        ({"max_steps": 500, "n_epochs": 3}, 100, 3, 38),
        ({}, 3, 1, 1),
    ],
)
def test_length(given: dict[str, Any], rows: int, epochs: int, steps: int) -> None:
    values = hyper(given, train_rows=rows)
    assert (values["n_epochs"], values["max_steps"]) == (epochs, steps)


def test_too_many_steps_for_the_rows() -> None:
    with pytest.raises(InvalidRequest, match="10 training rows 80 times") as refusal:
        hyper({"max_steps": 100}, train_rows=10)
    assert refusal.value.param == "method.reinforcement.hyperparameters.max_steps"


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ({}, 1e-4),
        ({"lora_rank": 0}, 1e-5),
        ({"learning_rate_multiplier": 2}, 2e-4),
        ({"learning_rate_multiplier": 2, "learning_rate": 3e-5}, 3e-5),
    ],
)
def test_learning_rate(given: dict[str, Any], rate: float) -> None:
    assert hyper(given)["learning_rate"] == pytest.approx(rate)


@pytest.mark.parametrize(("multiplier", "size"), [(0.001, 2), (0.5, 4), (1, 8), (10, 80)])
def test_compute_multiplier_scales_the_group(multiplier: float, size: int) -> None:
    assert hyper({"compute_multiplier": multiplier})["group_size"] == size


@pytest.mark.parametrize(
    ("given", "rows", "samples"),
    [({}, 1, 1), ({}, 1000, 64), ({}, 0, 1), ({"eval_samples": 500}, 40, 40)],
)
def test_evaluation_samples(given: dict[str, Any], rows: int, samples: int) -> None:
    assert hyper(given, validation_rows=rows)["eval_samples"] == samples


def test_a_small_file_makes_a_small_batch() -> None:
    assert hyper(train_rows=3)["batch_size"] == 3


def test_warm_start() -> None:
    full = resolved({"lora_rank": 0}, warm_start={"file": "file-a"})["warm_start"]
    assert full == {"file": "file-a", "epochs": 3, "learning_rate": 2e-5, "batch_size": 16}
    lora = resolved(warm_start={"reference_field": "answer"}, warm_rows=5)["warm_start"]
    assert lora == {
        "reference_field": "answer",
        "epochs": 3,
        "learning_rate": 2e-4,
        "batch_size": 5,
    }
    scaled = resolved({"learning_rate_multiplier": 0.5}, warm_start={"file": "file-a"})
    assert scaled["warm_start"]["learning_rate"] == pytest.approx(1e-4)
    given = {"file": "file-a", "epochs": 9, "learning_rate": 1e-3, "batch_size": 2}
    assert resolved(warm_start=given)["warm_start"] == given


def test_without_a_warm_start_there_is_none() -> None:
    assert "warm_start" not in resolved()


@pytest.mark.parametrize(
    ("name", "value"), [("reasoning_effort", "high"), ("max_completion_tokens", 8192)]
)
def test_what_the_model_cannot_do_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"(?i){name}.*model base|model base.*{name}") as error:
        hyper({name: value})
    assert error.value.param == f"method.reinforcement.hyperparameters.{name}"


def test_completions_fit_a_small_context() -> None:
    small = BaseModel("small", Path("s"), context_tokens=128, owned_by="us", created=1)
    assert hyper(model=small)["max_completion_tokens"] == 64


def offline(kind: str, values: dict[str, Any] | None = None, **rows: int) -> dict[str, Any]:
    block = {kind: {"hyperparameters": values or {}}}
    counts = {"train_rows": 100, "validation_rows": 40, "warm_rows": 0, **rows}
    shown = resolve(Method.model_validate({"type": kind, **block}), **counts, model=MODEL)
    assert resolve(Method.model_validate(shown), **counts, model=MODEL) == shown
    assert shown[kind]["limits"] == {"plateau_window": 0}
    result: dict[str, Any] = shown[kind]["hyperparameters"]
    return result


def test_supervised_all_automatic() -> None:
    assert offline("supervised") == {
        "batch_size": 16,
        "learning_rate_multiplier": 1.0,
        "n_epochs": 3,
        "learning_rate": 2e-4,
        "max_steps": 19,
        "eval_interval": 1,
        "eval_samples": 40,
        "lora_rank": 16,
        "lora_alpha": 32.0,
        "lora_targets": "all-linear",
        "quantization": "none",
    }


@pytest.mark.parametrize(
    ("given", "beta", "loss", "rate"),
    [
        ({}, 0.1, "dpo", 1e-5),
        ({"lora_rank": 0}, 0.1, "dpo", 1e-6),
        ({"loss": "orpo", "beta": 0.5}, 0.5, "orpo", 8e-5),
        ({"loss": "kto", "learning_rate_multiplier": 3}, 0.1, "kto", 3e-5),
    ],
)
def test_preferences(given: dict[str, Any], beta: float, loss: str, rate: float) -> None:
    values = offline("dpo", given)
    assert (values["n_epochs"], values["beta"], values["loss"]) == (1, beta, loss)
    assert values["learning_rate"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("given", "epochs", "steps"),
    [
        ({"max_steps": 30}, 5, 30),
        ({"n_epochs": 2, "batch_size": 8}, 2, 25),
        ({"max_steps": 3}, 1, 3),
    ],
)
def test_length_of_supervised_training(given: dict[str, Any], epochs: int, steps: int) -> None:
    values = offline("supervised", given)
    assert (values["n_epochs"], values["max_steps"]) == (epochs, steps)


def test_a_step_takes_no_row_twice() -> None:
    """Or an epoch would be less than a step, and three epochs one update."""
    values = offline("supervised", {"batch_size": 64}, train_rows=10)
    assert (values["batch_size"], values["n_epochs"], values["max_steps"]) == (10, 3, 3)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"lora_rank": 0}, []),
        ({"lora_rank": 0, "lora_alpha": 8}, ["lora_alpha"]),
        ({"lora_rank": 0, "lora_targets": ["q_proj"]}, ["lora_targets"]),
        ({"lora_alpha": 8, "lora_targets": ["q_proj"]}, []),
    ],
)
def test_what_says_something_of_no_adapter_is_told(given: dict[str, Any], named: list[str]) -> None:
    said = unused_adapter(offline("supervised", given), MODEL)
    assert [sentence.split()[0] for sentence in said] == named


@pytest.mark.parametrize(
    ("changes", "told"),
    [({}, False), ({"n_epochs": 5}, True), ({"batch_size": 4}, True), ({"n_epochs": 2}, False)],
)
def test_a_shown_job_that_is_sent_again_with_more_epochs_is_told_what_ends_it(
    changes: dict[str, Any], told: bool
) -> None:
    shown = offline("supervised", {"n_epochs": 3})
    values = offline("supervised", {**shown, **changes})
    said = cut_short(values, 100)
    assert bool(said) is told
    assert not said or said[0].startswith("max_steps ends the job after 19 of the ")
    assert cut_short(offline("supervised", {"max_steps": 30}), 100) == []


def test_too_many_supervised_steps_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="10 training rows 100 times") as refusal:
        offline("supervised", {"max_steps": 100}, train_rows=10)
    assert refusal.value.param == "method.supervised.hyperparameters.max_steps"


@pytest.mark.parametrize("kind", ["reinforcement", "supervised", "dpo"])
@pytest.mark.parametrize(
    ("given", "nf4", "said"),
    [
        ({"quantization": "nf4", "lora_rank": 0}, True, "lora_rank"),
        ({"quantization": "nf4"}, False, "Model base"),
    ],
)
def test_quantization_that_cannot_be_is_refused(
    kind: str, given: dict[str, Any], nf4: bool, said: str
) -> None:
    grader = {"grader": GRADER} if kind == "reinforcement" else {}
    method = Method.model_validate({"type": kind, kind: {"hyperparameters": given, **grader}})
    with pytest.raises(InvalidRequest, match=said) as refusal:
        check_model(method, replace(MODEL, nf4=nf4))
    assert refusal.value.param == f"method.{kind}.hyperparameters.quantization"


def test_a_model_names_the_layers_of_its_adapters() -> None:
    model = replace(MODEL, lora_targets=("q_proj", "v_proj"))
    assert hyper(model=model)["lora_targets"] == ["q_proj", "v_proj"]
    assert hyper({"lora_targets": ["o_proj"]}, model=model)["lora_targets"] == ["o_proj"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"correction_low": 3.0}, "correction_low"),
        ({"max_completion_tokens": 20, "overlong_buffer_tokens": 21}, "overlong_buffer_tokens"),
        ({"batch_size": 4, "minibatches": 5}, "minibatches"),
    ],
)
def test_values_that_contradict_each_other_are_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named) as refusal:
        hyper(given)
    assert refusal.value.param == f"method.reinforcement.hyperparameters.{named}"

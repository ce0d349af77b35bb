"""`auto` becomes the documented value, and a shown job can be sent again."""

from pathlib import Path
from typing import Any

import pytest

from core.errors import InvalidRequest
from core.methods import Method
from core.registry import BaseModel
from core.resolve import resolve

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
        "max_steps": 13,
    }


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
    assert hyper(given) == given


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

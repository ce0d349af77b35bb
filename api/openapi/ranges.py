"""The ranges of the document: `core.methods` checks them in code, which pydantic cannot show."""

from typing import Any

from pydantic import BaseModel, BeforeValidator

from api.schemas.dry_runs import CreateDryRun
from core.methods import (
    Hyperparameters,
    Limits,
    PreferenceHyperparameters,
    Range,
    ReinforcementLimits,
    SupervisedHyperparameters,
    WarmStart,
)

_MODELS: tuple[type[BaseModel], ...] = (
    Hyperparameters,
    WarmStart,
    ReinforcementLimits,
    SupervisedHyperparameters,
    PreferenceHyperparameters,
    Limits,
    CreateDryRun,
)


def add(schemas: dict[str, Any]) -> None:
    """Say the range of each field that has one."""
    for model in _MODELS:
        properties = schemas[model.__name__]["properties"]
        for name, field in model.model_fields.items():
            for mark in field.metadata:
                if isinstance(mark, BeforeValidator) and isinstance(mark.func, Range):
                    del properties[name]["anyOf"]
                    properties[name]["anyOf"] = _choices(mark.func)


def _choices(allowed: Range) -> list[dict[str, Any]]:
    low = "exclusiveMinimum" if allowed.open_low else "minimum"
    number: dict[str, Any] = {
        "type": "integer" if allowed.kind is int else "number",
        low: allowed.low,
    }
    if allowed.high is not None:
        number["maximum"] = allowed.high
    zero = [{"const": 0}] if allowed.zero else []
    return [*zero, number, {"const": "auto"}]

"""Cloning: the body that would create a job again, with changes merged in.

Changes are a JSON merge patch (RFC 7396): objects are merged key by key, null takes a key away, all
else replaces. Two things are taken as they are given: a grader of another type than the source's,
of which no field would fit, and everything that is a JSON Schema.
"""

from collections.abc import Mapping
from typing import Any

from core.methods import chosen
from core.models import Job
from graders.masking import MASK

#: Fields that hold a JSON Schema, in which null and every key have a meaning of their own.
_SCHEMAS = frozenset({"schema", "response_format"})

#: Fields that hold a grader.
_GRADERS = frozenset({"grader", "monitor_grader"})


def body_of(job: Job) -> dict[str, Any]:
    """Return the body that creates this job again; values that were `"auto"` stand resolved."""
    body = {
        "model": job.init_from or job.model,
        "training_file": job.training_file,
        "validation_file": job.validation_file,
        "method": job.method,
        "suffix": job.suffix,
        "seed": job.seed,
        "metadata": job.meta,
    }
    return {name: value for name, value in body.items() if value is not None}


def with_changes(body: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with `changes` merged in.

    Hyperparameters beside the method stand above the source's; one that the changes also have
    inside the method, with another value, is refused when the job is created.
    """
    source = dict(body)
    beside = changes.get("hyperparameters") or {}
    if beside:
        source["method"] = _without(source["method"], beside)
    return _merged(source, changes)


def _without(method: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    block = chosen(method)
    kept = {
        name: value
        for name, value in block.get("hyperparameters", {}).items()
        if names.get(name) is None
    }
    return {**method, method["type"]: {**block, "hyperparameters": kept}}


def _merged(source: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(source)
    for name, change in changes.items():
        before = source.get(name)
        if change is None:
            result.pop(name, None)
        elif change == MASK and before is not None:
            continue  # a secret as the API shows it: the source's stays
        elif not isinstance(change, Mapping) or name in _SCHEMAS:
            result[name] = change
        elif isinstance(before, Mapping) and not _another_type(name, before, change):
            result[name] = _merged(before, change)
        else:
            result[name] = _merged({}, change)
    return result


def _another_type(name: str, before: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    return name in _GRADERS and change.get("type", before.get("type")) != before.get("type")

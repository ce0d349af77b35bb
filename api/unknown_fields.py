"""Find the fields of a body that no model knows, and the known name nearest to each."""

from collections.abc import Iterator, Mapping
from types import GenericAlias
from typing import Any, get_args

from pydantic import BaseModel

from core.errors import InvalidRequest
from core.nearest import nearest

#: Names that other tools use, where no spelling distance leads to ours.
SYNONYMS = {
    "test_file": "validation_file",
    "eval_file": "validation_file",
    "dataset": "training_file",
    "lr": "learning_rate",
    "epochs": "n_epochs",
    "num_epochs": "n_epochs",
    "num_generations": "group_size",
    "beta": "kl_coefficient",
    "max_tokens": "max_completion_tokens",
    "name": "suffix",
    "tags": "metadata",
}


def refuse_unknown_fields(model: type[BaseModel], body: Mapping[str, Any]) -> None:
    """Raise one `InvalidRequest` that names every unknown field in `body`, at any depth."""
    unknown = list(_unknown(model, body, ""))
    if not unknown:
        return
    elsewhere = {path.rpartition(".")[2]: path for path in _paths(model, "", frozenset())}
    named = [_described(path, siblings, elsewhere) for path, siblings in unknown]
    word = "parameter" if len(named) == 1 else "parameters"
    raise InvalidRequest(
        f"Unknown {word}: {', '.join(named)}.", param=unknown[0][0], code="unknown_parameter"
    )


def _described(path: str, siblings: list[str], elsewhere: dict[str, str]) -> str:
    name = path.rpartition(".")[2]
    synonym = SYNONYMS.get(name)
    guess = synonym if synonym in siblings else nearest(name, siblings) or elsewhere.get(name)
    return f"'{path}'" + (f" (did you mean '{guess}'?)" if guess else "")


def _unknown(
    model: type[BaseModel], body: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the path of each unknown field with the names known in its place."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for name, value in body.items():
        if name not in known:
            yield prefix + name, list(known)
            continue
        for inner in _models(known[name].annotation):
            for place, part in _parts(value, prefix + name):
                yield from _unknown(inner, part, f"{place}.")


def _parts(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects in `value`: itself, or the elements of a list."""
    if isinstance(value, Mapping):
        yield path, value
    elif isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, Mapping):
                yield f"{path}[{index}]", element


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation such as `list[Model] | None` names."""
    if isinstance(annotation, type) and not isinstance(annotation, GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for argument in get_args(annotation):
        yield from _models(argument)


def _paths(model: type[BaseModel], prefix: str, above: frozenset[type[BaseModel]]) -> Iterator[str]:
    """Yield the path of every field below `model`, shallow ones last."""
    for name, field in model.model_fields.items():
        path = prefix + (field.alias or name)
        for inner in _models(field.annotation):
            if inner not in above:
                yield from _paths(inner, f"{path}.", above | {inner})
        yield path

"""Find the fields of a body that no model knows, and the known name nearest to each."""

from collections.abc import Iterator, Mapping
from types import GenericAlias
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from core.errors import InvalidRequest
from core.methods import Method
from core.nearest import nearest

#: The most known names that one sentence lists.
MAX_LISTED = 12

#: Names that other tools use, where no spelling distance leads to ours: the first one that the
#: place knows is meant.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "test_file": ("validation_file",),
    "eval_file": ("validation_file",),
    "dataset": ("training_file",),
    "lr": ("learning_rate",),
    "epochs": ("n_epochs",),
    "num_epochs": ("n_epochs",),
    "num_train_epochs": ("n_epochs",),
    "per_device_train_batch_size": ("batch_size",),
    "num_generations": ("group_size",),
    "beta": ("kl_coefficient",),
    "loss_type": ("algorithm", "loss"),
    "num_iterations": ("rollout_epochs",),
    "epsilon": ("clip_low",),
    "delta": ("dual_clip",),
    "gamma": ("discount",),
    "lam": ("gae_lambda",),
    "target_modules": ("lora_targets",),
    "r": ("lora_rank",),
    "max_tokens": ("max_completion_tokens",),
    "name": ("suffix",),
    "tags": ("metadata",),
}

_WHOLE = (
    "completions are drawn from the whole distribution, whose log-probabilities training needs;"
    " set temperature instead"
)
#: What is left out on purpose, and why.
REASONS = {
    "top_p": _WHOLE,
    "top_k": _WHOLE,
    "min_p": _WHOLE,
    "epsilon_high": "other trainers mean two things by it; set clip_high, a distance above 1, or"
    " cispo_weight_cap, the largest weight",
}


def refuse_unknown_fields(model: type[BaseModel], body: Mapping[str, Any]) -> None:
    """Raise one `InvalidRequest` that names every unknown field in `body`, at any depth."""
    unknown = list(_unknown(model, body, ""))
    if not unknown:
        return
    elsewhere = {path.rpartition(".")[2]: path for path in _paths(model, body, "", frozenset())}
    named, listings = [], {}
    for path, siblings in unknown:
        place, _, name = path.rpartition(".")
        if place.endswith("hyperparameters") and name in REASONS:
            named.append(f"'{path}' ({REASONS[name]})")
            continue
        guess = _guess(name, siblings, elsewhere)
        named.append(f"'{path}'" + (f" (did you mean '{guess}'?)" if guess else ""))
        if guess is None:
            listings[place] = _listing(place, siblings)
    word = "parameter" if len(named) == 1 else "parameters"
    raise InvalidRequest(
        " ".join([f"Unknown {word}: {', '.join(named)}.", *listings.values()]),
        param=unknown[0][0],
        code="unknown_parameter",
    )


def _guess(name: str, siblings: list[str], elsewhere: dict[str, str]) -> str | None:
    meant = (each for each in SYNONYMS.get(name, ()) if each in siblings)
    return next(meant, None) or nearest(name, siblings) or elsewhere.get(name)


def _listing(place: str, known: list[str]) -> str:
    """Say what the place takes; a long list is cut, and the rest is in the documentation."""
    where = f"'{place}'" if place else "The body"
    if not known:
        return f"{where} takes no fields."
    shown = ", ".join(known[:MAX_LISTED])
    more = len(known) - MAX_LISTED
    rest = f" and {more} more, which docs/api.md lists" if more > 0 else ""
    return f"{where} takes {shown}{rest}."


def _unknown(
    model: type[BaseModel], body: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the path of each unknown field with the names known in its place."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    # What the model leaves aside may hold anything.
    read = model.considered(body) if issubclass(model, Method) else body
    for name, value in read.items():
        if name not in known:
            yield prefix + name, [each for each in known if not _is_refused(known[each])]
            continue
        for inner in _models(known[name].annotation):
            for place, part in _parts(value, prefix + name):
                yield from _unknown(inner, part, f"{place}.")


def _is_refused(field: FieldInfo) -> bool:
    """Whether a field is known only to be refused in words of its own."""
    return field.annotation is type(None)


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


def _paths(
    model: type[BaseModel], body: Any, prefix: str, above: frozenset[type[BaseModel]]
) -> Iterator[str]:
    """Yield the path of every field that is read of such a body, shallow ones last."""
    given = body if isinstance(body, Mapping) else {}
    fields: Mapping[str, Any] = {**model.model_fields, **given}
    read = model.considered(fields) if issubclass(model, Method) else fields
    for name, field in model.model_fields.items():
        if name not in read:
            continue
        path = prefix + (field.alias or name)
        for inner in _models(field.annotation):
            if inner not in above:
                yield from _paths(inner, given.get(name), f"{path}.", above | {inner})
        yield path

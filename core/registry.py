"""The base models that jobs may start from, as `models.toml` lists them."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from core.errors import ConfigurationError
from core.nearest import nearest
from graders.wording import reason

Name = Annotated[str, Field(pattern=r"^\S+$")]


@dataclass(frozen=True)
class BaseModel:
    """One base model: a Hugging Face folder at `path`; `created` is in unix seconds.

    Args:
        chat_template: a file whose template stands in for the one in the folder.
        dtype: the number format that it is trained in, where that of the worker does not suit it.
        lora_targets: the linear layers that carry an adapter when a job names none.
        nf4: whether jobs may train an adapter on it in 4 bits.
        tool_parser: the name of vLLM's parser for its tool calls, where the chat template alone
            does not tell.
    """

    # A mistyped field would otherwise be ignored.
    __pydantic_config__ = ConfigDict(extra="forbid")

    id: Name
    path: Path
    context_tokens: Annotated[int, Field(ge=1)]
    owned_by: str
    created: Annotated[int, Field(ge=0)]
    aliases: tuple[Name, ...] = ()
    tool_parser: str | None = None
    chat_template: Path | None = None
    dtype: Literal["bfloat16", "float32"] | None = None
    lora_targets: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    nf4: bool = True


class Registry:
    """Looks models up by id or alias; `source` is the file that lists them."""

    def __init__(self, models: list[BaseModel], *, source: Path) -> None:
        self._models = models
        self._source = source
        names = [name for model in models for name in (model.id, *model.aliases)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigurationError(
                f"Several base models of {source} share an id or alias: {', '.join(twice)};"
                " rename all but one."
            )
        self._by_name = {name: model for model in models for name in (model.id, *model.aliases)}

    @classmethod
    def load(cls, path: Path) -> "Registry":
        """Read the file; model paths in it are relative to its folder.

        Raises ConfigurationError that names what is wrong with it.
        """
        folder = path.resolve().parent
        entries = [_entry(raw, number, path) for number, raw in enumerate(_entries(path), start=1)]
        models = [_beside(entry, folder) for entry in entries]
        return cls(models, source=path)

    def get(self, name: str) -> BaseModel | None:
        """Return the model with this id or alias, or None."""
        return self._by_name.get(name)

    def require(self, name: str) -> BaseModel:
        """Return the model with this id or alias, whose folder is there.

        Raises ConfigurationError when it is not listed, or its folder has no `config.json`, or its
        chat template is missing.
        """
        model = self.get(name)
        if model is None:
            raise ConfigurationError(
                f"The base model {name} is not listed in {self._source} of this worker; add it"
                " there and restart the workers."
            )
        if not (model.path / "config.json").is_file():
            raise ConfigurationError(
                f"The base model {model.id} is missing at {model.path}: no config.json is there;"
                f" run `make setup`, or correct its path in {self._source} and restart the workers."
            )
        template = model.chat_template
        if template is not None and not template.is_file():
            raise ConfigurationError(
                f"The chat template of base model {model.id} is missing at {template}; correct its"
                f" path in {self._source} and restart the workers."
            )
        return model

    def all(self) -> list[BaseModel]:
        """Return every model in the order of the file."""
        return list(self._models)

    def close_match(self, name: str) -> str | None:
        """Return the id or alias that looks most like `name`, for error messages."""
        return nearest(name, self._by_name)


def _entries(path: Path) -> list[Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"The model list {path} does not exist; set RFT_MODELS_FILE to the right path."
        ) from error
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The model list {path} cannot be read: {error}; correct it, or set RFT_MODELS_FILE to"
            " another one."
        ) from error
    entries = document.pop("models", [])
    if document or not isinstance(entries, list):
        other = f"not {', '.join(document)}" if document else "as a list of tables"
        raise ConfigurationError(
            f"The model list {path} may hold [[models]] entries only, {other}; correct it there."
        )
    return entries


def _beside(entry: BaseModel, folder: Path) -> BaseModel:
    template = entry.chat_template
    return replace(
        entry,
        path=folder / entry.path,
        chat_template=None if template is None else folder / template,
    )


def _entry(raw: Any, number: int, path: Path) -> BaseModel:
    try:
        return TypeAdapter(BaseModel).validate_python(raw)
    except ValidationError as error:
        found = error.errors()
        wrong = [" ".join([*map(str, each["loc"]), reason(each)]) for each in found]
        raise ConfigurationError(
            f"Model {number} of the list {path} is wrong: {'; '.join(wrong)}; correct it there."
        ) from error

"""The base models that jobs may start from, as `models.toml` lists them."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from core.errors import ConfigurationError
from core.nearest import nearest


@dataclass(frozen=True)
class BaseModel:
    """One base model: a Hugging Face folder at `path`; `created` is in unix seconds.

    `tool_parser` is the name of vLLM's parser for its tool calls, where the chat template alone
    does not tell.
    """

    # A mistyped field would otherwise be ignored.
    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    path: Path
    context_tokens: int
    owned_by: str
    created: int
    aliases: tuple[str, ...] = ()
    tool_parser: str | None = None


class Registry:
    """Looks models up by id or alias; `source` is the file that lists them."""

    def __init__(self, models: list[BaseModel], *, source: Path) -> None:
        self._models = models
        self._source = source
        self._by_name = {name: model for model in models for name in (model.id, *model.aliases)}
        if len(self._by_name) != sum(1 + len(model.aliases) for model in models):
            raise ConfigurationError("Two base models share an id or alias; rename one of them.")

    @classmethod
    def load(cls, path: Path) -> "Registry":
        """Read the file; model paths in it are relative to its folder."""
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
            entries = TypeAdapter(list[BaseModel]).validate_python(document.get("models", []))
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"The model list {path} does not exist; set RFT_MODELS_FILE to the right path."
            ) from error
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise ConfigurationError(f"The model list {path} cannot be read: {error}") from error
        folder = path.resolve().parent
        models = [replace(entry, path=folder / entry.path) for entry in entries]
        return cls(models, source=path)

    def get(self, name: str) -> BaseModel | None:
        """Return the model with this id or alias, or None."""
        return self._by_name.get(name)

    def require(self, name: str) -> BaseModel:
        """Return the model with this id or alias, whose folder is there.

        Raises ConfigurationError when it is not listed, or its folder has no `config.json`.
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
        return model

    def all(self) -> list[BaseModel]:
        """Return every model in the order of the file."""
        return list(self._models)

    def close_match(self, name: str) -> str | None:
        """Return the id or alias that looks most like `name`, for error messages."""
        return nearest(name, self._by_name)

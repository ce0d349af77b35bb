"""The judges that graders may ask: those of the operator's file, and the base models served here.

# judges.toml
[[judges]]
model = "gpt-4.1*"
base_url = "https://api.openai.com/v1"
api_key_env = "OPENAI_API_KEY"
"""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import ConfigurationError, InvalidRequest
from core.registry import Registry
from core.settings import Settings
from graders.access import problems, reduced
from graders.errors import SpecError
from graders.http import HttpConfig
from graders.judges.config import MAX_BUDGET_S, JudgeConfig
from graders.sandbox import SandboxConfig
from graders.services import ServicesConfig
from graders.spec import GraderSpec, parse_grader

#: How long the serving service may take for one answer, in seconds: it may have to load the model.
SERVED_TIMEOUT_S = 240.0


class JudgeBook:
    """What the operator allows graders to use."""

    def __init__(self, config: ServicesConfig) -> None:
        self.config = config

    @classmethod
    def load(
        cls, settings: Settings, registry: Registry, environment: Mapping[str, str] = os.environ
    ) -> "JudgeBook":
        """Read the judges file, with its keys from `environment`; raises ConfigurationError."""
        listed = read_file(settings.judges_file, environment) if settings.judges_file else []
        hosts = tuple(host.strip() for host in settings.outbound_hosts.split(",") if host.strip())
        judges = (*listed, *served(settings, registry))
        http, sandbox = HttpConfig(allow_hosts=hosts), sandbox_config(settings)
        return cls(ServicesConfig(judges=judges, http=http, sandbox=sandbox))

    def check(self, grader: GraderSpec, *, param: str) -> None:
        """Raise InvalidRequest when the grader asks for a judge or a host that it cannot have."""
        found = problems(grader, self.config)
        if found:
            reasons = " ".join(problem.message for problem in found)
            place = f"{param}.{found[0].param}"
            message = f"Invalid grader at '{place}': {reasons}"
            raise InvalidRequest(message, param=place, code=found[0].code)

    def environment(self, grader: Mapping[str, Any]) -> dict[str, str]:
        """The variables that the process of this grader needs; they hold the keys of its judges.

        Raises ConfigurationError when the grader is not valid any more.
        """
        try:
            config = reduced(parse_grader(grader), self.config)
        except SpecError as error:
            raise ConfigurationError(f"The grader is refused: {error}") from error
        return {"RFT_GRADER_SERVICES": config.model_dump_json()}

    def price(self, model: str, *, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What a judge's tokens cost in US dollars; None when the operator gave no prices."""
        found = next((judge for judge in self.config.judges if judge.covers(model)), None)
        if found is None or found.input_price is None or found.output_price is None:
            return None
        cost = prompt_tokens * found.input_price + completion_tokens * found.output_price
        return cost / 1_000_000


def sandbox_config(settings: Settings) -> SandboxConfig:
    """How python graders run here."""
    return SandboxConfig(
        timeout_s=settings.sandbox_timeout_s,
        memory_mb=settings.sandbox_memory_mb,
        disk_mb=settings.sandbox_disk_mb,
        concurrency=settings.sandbox_concurrency or None,
        **({"python": settings.sandbox_python} if settings.sandbox_python else {}),
    )


def read_file(path: Path, environment: Mapping[str, str]) -> list[JudgeConfig]:
    """Read a judges file; raises ConfigurationError that names what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"The judges file {path} does not exist; set RFT_JUDGES_FILE to the right path, or"
            " unset it."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The judges file {path} cannot be read: {error}") from error
    entries = document.pop("judges", [])
    if document or not isinstance(entries, list):
        raise ConfigurationError(
            f"The judges file {path} may hold [[judges]] entries only, not {sorted(document)}."
        )
    return [_entry(entry, path, environment) for entry in entries]


def _entry(raw: Any, path: Path, environment: Mapping[str, str]) -> JudgeConfig:
    fields = dict(raw) if isinstance(raw, dict) else {}
    name = fields.get("model", "without a model")
    variable = fields.pop("api_key_env", None)
    if "api_key" in fields or "headers" in fields:
        raise ConfigurationError(
            f"Judge {name} in {path} holds a secret; name the variable that has it in api_key_env."
        )
    if variable is not None:
        key = environment.get(str(variable))
        if not key:
            raise ConfigurationError(
                f"Judge {name} in {path} takes its key from {variable}, which is not set."
            )
        fields["api_key"] = key
    try:
        return JudgeConfig.model_validate(fields)
    except ValidationError as error:
        wrong = "; ".join(f"{_place(each['loc'])}: {each['msg']}" for each in error.errors())
        raise ConfigurationError(f"Judge {name} in {path} is wrong: {wrong}.") from error


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "the entry"


def served(settings: Settings, registry: Registry) -> list[JudgeConfig]:
    """The base models as judges, under their ids and aliases, through the serving service."""
    token = settings.serving_token
    secret = {"x-rft-token": token.get_secret_value()} if token else {}
    return [
        JudgeConfig(
            model=name,
            base_url=f"{settings.serving_url.rstrip('/')}/v1",
            headers={**secret, "x-rft-model": json.dumps(_target(model.id))},
            upstream=model.id,
            does=("chat",),
            timeout_s=SERVED_TIMEOUT_S,
            budget_s=MAX_BUDGET_S,
        )
        for model in registry.all()
        for name in (model.id, *model.aliases)
    ]


def _target(base: str) -> dict[str, str | None]:
    return {"base": base, "artifact": None, "kind": None}

"""Every setting of the service, read from `RFT_…` environment variables.

`docs/settings.md` lists them all; a test keeps the two in step.
"""

import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from core.errors import ConfigurationError
from graders.wording import reason


class Settings(BaseSettings):
    """One object for API, workers and command line; units stand in the names."""

    # Compose files pass unset variables as empty ones; those mean the default.
    # What is wrong with a secret is said without the secret.
    model_config = SettingsConfigDict(
        env_prefix="RFT_", env_ignore_empty=True, extra="ignore", hide_input_in_errors=True
    )

    database_url: str = Field(
        "sqlite:///.rft/rft.db",
        description="SQLAlchemy URL of the database: `sqlite:///path` or `postgresql://…`.",
    )
    broker_url: str = Field(
        "redis://127.0.0.1:6379/0",
        description="Redis or Valkey URL that carries wake-up messages between API and workers.",
    )
    s3_endpoint_url: str | None = Field(
        None, description="URL of an S3-compatible object store; empty for AWS S3."
    )
    s3_public_url: str | None = Field(
        None,
        description="URL under which users reach the object store, for presigned downloads; empty"
        " where it is the same.",
    )
    s3_bucket: str = Field(
        "rft", min_length=3, description="Bucket that holds files, checkpoints and rollouts."
    )
    s3_access_key_id: str | None = Field(
        None, description="Access key of the object store; empty for the machine's own role."
    )
    s3_secret_access_key: SecretStr | None = Field(None, description="Secret of the access key.")
    s3_region: str = Field("us-east-1", description="Region of the object store.")
    models_file: Path = Field(
        Path("models.toml"), description="File that lists the base models jobs may start from."
    )
    judges_file: Path | None = Field(
        None, description="File that lists the models graders may ask as judges."
    )
    outbound_hosts: str = Field(
        "",
        description="Hosts, as `name` or `name:port`, that graders and webhooks may call though"
        " they are inside the network.",
    )
    sandbox_python: str | None = Field(
        None,
        description="Python that runs python graders, with the packages they import; empty for this"
        " one.",
    )
    sandbox_timeout_s: float = Field(
        120.0, gt=0, le=3600, description="Seconds one call of a python grader may take."
    )
    sandbox_memory_mb: int = Field(
        2048, ge=64, description="Memory of one call of a python grader, in MB."
    )
    sandbox_disk_mb: int = Field(
        1024, ge=1, description="What one call of a python grader may have on disk, in MB."
    )
    sandbox_concurrency: int = Field(
        0, ge=0, description="Calls of python graders at the same time; 0 for one per core."
    )
    data_dir: Path = Field(
        Path(".rft"),
        description="Local folder for job directories, caches and the embedded servers' data.",
    )
    serving_url: str = Field(
        "http://127.0.0.1:8100", description="URL of the model-serving service."
    )
    serving_token: SecretStr | None = Field(
        None, description="Token that API and serving share; serving refuses calls without it."
    )
    serving_engines: int = Field(
        2,
        ge=1,
        description="Model servers that run at the same time; each holds one base model with its"
        " adapters, or, on a CPU and for full weights, one model.",
    )
    serving_idle_s: float = Field(
        900.0, gt=0, description="Seconds without a request after which a model server is stopped."
    )
    serving_options: str = Field(
        "", description="Further options of every vLLM server, as on a command line."
    )
    serving_proof: bool = Field(
        True,
        description="Ask each job's final model, and its base, for the log-probabilities that the"
        " trainer recorded.",
    )
    dashboard_dir: Path = Field(
        Path("dashboard/dist"), description="Folder of the built dashboard that the API serves."
    )
    organization_id: str = Field(
        "org-rft", description="Organisation id shown in job objects and model names."
    )
    max_upload_bytes: int = Field(
        512 * 1024 * 1024,
        gt=0,
        description="Largest file the API accepts in one request, in bytes.",
    )
    max_assembled_bytes: int = Field(
        8 * 1024**3, gt=0, description="Largest file that may arrive in parts, in bytes."
    )
    cors_origins: str = Field(
        "",
        description="Origins, as `https://host`, whose web pages may call the API; `*` for all,"
        " empty for none.",
    )
    limit_requests_per_minute: int | None = Field(
        None, ge=0, description="Requests a project may make in a minute; empty for no limit."
    )
    limit_requests_per_minute_per_key: int | None = Field(
        None, ge=0, description="Requests one API key may make in a minute; empty for no limit."
    )
    limit_live_jobs: int | None = Field(
        None,
        ge=0,
        description="Unfinished jobs and dry runs a project may have; empty for no limit.",
    )
    limit_gpu_seconds: int | None = Field(
        None,
        ge=0,
        description="GPU seconds that all jobs of a project may run together; empty for no limit.",
    )
    limit_stored_bytes: int | None = Field(
        None,
        ge=0,
        description="Bytes of files and models a project may store; empty for no limit.",
    )
    lease_ttl_s: float = Field(
        30.0,
        gt=0,
        description="Seconds a worker holds a job without a heartbeat before another takes it.",
    )
    heartbeat_s: float = Field(
        5.0, gt=0, description="Seconds between two heartbeats of a worker that holds a job."
    )
    stall_timeout_s: float = Field(
        1800.0,
        gt=0,
        description="Seconds without a report after which a trainer counts as stuck.",
    )
    stop_grace_s: float = Field(
        10.0,
        ge=0,
        description="Seconds a worker told to end gives its trainer to store a checkpoint.",
    )
    failure_share_limit: float = Field(
        0.2,
        gt=0,
        le=1,
        description="Share of failed gradings in a step above which the job is paused.",
    )
    trainer_engine: Literal["vllm", "transformers"] = Field(
        "vllm", description="Engine that generates completions during training."
    )
    trainer_dtype: Literal["bfloat16", "float32"] = Field(
        "bfloat16", description="Number format of the trainer's matrix products."
    )
    trainer_threads: int = Field(
        0,
        ge=0,
        description="CPU threads of one job's trainer, shared by its processes; 0 uses all cores.",
    )
    trainer_processes: int = Field(
        1, ge=1, description="Processes that share each update of one job, on a GPU each."
    )
    trainer_sampler_memory_share: float = Field(
        0.4,
        gt=0,
        lt=1,
        description="Share of a GPU's memory for the sampler inside the trainer; the rest trains.",
    )

    eval_concurrency: int = Field(
        8, ge=1, description="Completions that one run of an eval asks the model for at a time."
    )
    price_per_hour: float | None = Field(
        None,
        ge=0,
        description="Price of one hour of a training worker, for the cost in dry-run reports.",
    )
    price_currency: str = Field("USD", min_length=1, description="Currency of that price.")

    # The messages name the form and not the value, which may hold a password.
    @field_validator("database_url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        if _backend(url) not in ("sqlite", "postgres", "postgresql"):
            raise ValueError("it must be sqlite:///path or postgresql://user:password@host/name")
        return url

    @field_validator("broker_url")
    @classmethod
    def _names_a_broker(cls, url: str) -> str:
        if not _is_url(url, "redis", "rediss"):
            raise ValueError("it must be redis://:password@host:port/0")
        return url

    @field_validator("s3_endpoint_url", "s3_public_url", "serving_url")
    @classmethod
    def _names_a_service(cls, url: str | None) -> str | None:
        if url is not None and not _is_url(url, "http", "https"):
            raise ValueError("it must be http://host:port or https://host:port")
        return url

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, text: str) -> str:
        for origin in text.replace(",", " ").split():
            if origin != "*" and not (_is_url(origin, "http", "https") and origin.count("/") == 2):
                raise ValueError("it must be origins as https://host:port, or *")
        return text

    @field_validator("serving_token")
    @classmethod
    def _fits_in_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        text = token.get_secret_value() if token else "-"
        if not (text.isascii() and text.isprintable() and " " not in text):
            raise ValueError("it must be printable ASCII without spaces: it travels in a header")
        return token

    @field_validator("serving_options")
    @classmethod
    def _can_be_split(cls, options: str) -> str:
        try:
            shlex.split(options)
        except ValueError as error:
            raise ValueError(f"it must be options as on a command line ({error})") from error
        return options

    @model_validator(mode="after")
    def _beats_within_lease(self) -> Self:
        if 2 * self.heartbeat_s > self.lease_ttl_s:
            raise ValueError(
                "the lease RFT_LEASE_TTL_S must be at least twice RFT_HEARTBEAT_S, or a late"
                " heartbeat loses the job"
            )
        return self


@cache
def get_settings() -> Settings:
    """Return the settings of this process, read once from the environment.

    Raises ConfigurationError that names every wrong variable.
    """
    return read_settings()


def read_settings(values: Mapping[str, Any] | None = None) -> Settings:
    """Read the environment now; `values` stand above it.

    Raises ConfigurationError that names every wrong variable.
    """
    try:
        return Settings(**(values or {}))
    except ValidationError as error:
        wrong = [f"{_variable(each['loc'])}{reason(each)}" for each in error.errors()]
        raise ConfigurationError(f"The settings are wrong: {'; '.join(wrong)}.") from error


def _variable(location: tuple[int | str, ...]) -> str:
    return f"RFT_{str(location[0]).upper()}: " if location else ""


def _backend(url: str) -> str | None:
    try:
        return make_url(url).get_backend_name()
    except (ArgumentError, ValueError):  # the second for a port that is no number
        return None


def _is_url(text: str, *schemes: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # checked when it is read
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.hostname)

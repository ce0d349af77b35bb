"""The settings with which the parts of an embedded stack find each other."""

import os
from collections.abc import Mapping
from pathlib import Path

from core.errors import ConfigurationError
from core.settings import Settings, read_settings
from core.stack import credentials
from core.stack.ports import LOCALHOST, PortBook

#: Settings that an embedded stack decides itself.
EMBEDDED = ("RFT_DATABASE_URL", "RFT_BROKER_URL", "RFT_S3_ENDPOINT_URL", "RFT_SERVING_URL")


def choose_ports(folder: Path) -> dict[str, int]:
    """Return a free port for each server that others must find; the same ones if possible."""
    book = PortBook(folder)
    return {name: book.choose(name) for name in ("broker", "store", "serving")}


def embedded_environment(folder: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """Return the `RFT_…` variables of the stack in `folder` that listens on `ports`."""
    secret, outside = credentials.load(folder), read_settings()
    judges = outside.judges_file
    return {
        **({"RFT_JUDGES_FILE": str(judges.resolve())} if judges else {}),
        "RFT_DATA_DIR": str(folder),
        "RFT_DATABASE_URL": database_url(folder),
        "RFT_BROKER_URL": f"redis://:{secret.broker_password}@{LOCALHOST}:{ports['broker']}/0",
        "RFT_S3_ENDPOINT_URL": f"http://{LOCALHOST}:{ports['store']}",
        "RFT_S3_ACCESS_KEY_ID": secret.s3_access_key_id,
        "RFT_S3_SECRET_ACCESS_KEY": secret.s3_secret_access_key,
        "RFT_SERVING_URL": f"http://{LOCALHOST}:{ports['serving']}",
        "RFT_SERVING_TOKEN": secret.serving_token,
        "RFT_MODELS_FILE": str(outside.models_file.resolve()),
        "RFT_DASHBOARD_DIR": str(outside.dashboard_dir.resolve()),
    }


def database_url(folder: Path) -> str:
    """Return the URL of the embedded database."""
    return f"sqlite:///{folder.resolve() / 'rft.db'}"


def refuse_outside_servers() -> None:
    """Raise ConfigurationError when the environment names servers that `up` would ignore."""
    named = [name for name in EMBEDDED if os.environ.get(name)]
    if named:
        raise ConfigurationError(
            f"{named[0]} is set, but this command runs servers of its own; unset it, or start the"
            " parts one by one as docker-compose.yml does."
        )


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Return the settings that a process with these variables would read."""
    return read_settings(
        {name.removeprefix("RFT_").lower(): value for name, value in environment.items()}
    )


def find_settings(folder: Path) -> Settings:
    """Return the environment's settings, or those of the embedded stack in `folder`.

    Raises ConfigurationError when there is neither.
    """
    if os.environ.get("RFT_DATABASE_URL"):
        return read_settings()
    folder = folder.resolve()
    if not (folder / "rft.db").exists():
        raise ConfigurationError(
            f"There is no stack in {folder} yet; run `rft-server up` first, name its folder with"
            " --dir, or set RFT_DATABASE_URL."
        )
    ports = PortBook(folder).remembered() or choose_ports(folder)
    return settings_from(embedded_environment(folder, ports))

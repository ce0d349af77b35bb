"""Bringing a database to the current schema."""

from pathlib import Path

from alembic import command
from alembic.config import Config

import migrations


def upgrade(url: str, revision: str = "head") -> None:
    """Create or upgrade the tables at `url`; safe to run from several machines at once."""
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    """Go back to an earlier revision; `base` removes every table."""
    command.downgrade(_config(url), revision)


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__path__[0])))
    # attributes, not set_main_option: ConfigParser would interpolate a '%' of the password.
    config.attributes["url"] = url
    return config

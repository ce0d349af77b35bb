"""`rft-server keys`: make, list and revoke API keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from sqlalchemy import select
from sqlalchemy.orm import Session

from core import keys
from core.clock import now
from core.db import make_engine, session_factory
from core.errors import NotFound
from core.models import ApiKey, Project
from core.stack.environment import find_settings
from core.stack.options import Folder

keys_app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)
_DAY_S = 24 * 60 * 60
_SCOPE_HELP = f"One of {', '.join(keys.SCOPES)}; may be repeated, default all."


@keys_app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")] = "default",
    project: Annotated[str, typer.Option(help="Project; made when new.")] = "default",
    scope: Annotated[list[str] | None, typer.Option(help=_SCOPE_HELP)] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires.")] = None,
    folder: Folder = Path(".rft"),
) -> None:
    """Make a key and print its secret; it cannot be shown again."""
    with _session(folder) as session:
        row = session.scalar(select(Project).where(Project.name == project).limit(1))
        row = row or keys.create_project(session, project)
        _key, secret = keys.create_key(
            session,
            row.id,
            name,
            scopes=scope or [keys.ALL],
            expires_at=now() + days * _DAY_S if days else None,
        )
    typer.echo(secret)


@keys_app.command(name="list")
def list_keys(folder: Folder = Path(".rft")) -> None:
    """List all keys, without their secrets."""
    with _session(folder) as session:
        query = select(ApiKey, Project.name).join(Project, ApiKey.project_id == Project.id)
        rows = session.execute(query.order_by(ApiKey.created_at, ApiKey.seq)).all()
    for key, project in rows:
        typer.echo("  ".join((key.id, f"{key.prefix}…", project, key.name, _state(key))))


@keys_app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    folder: Folder = Path(".rft"),
) -> None:
    """End a key at once."""
    with _session(folder) as session:
        key = session.get(ApiKey, key_id)
        if key is None:
            raise NotFound(f"There is no key {key_id!r}; `rft-server keys list` shows them.")
        keys.revoke_key(session, key)
    Console(highlight=False).print(f"Revoked {key_id}.")


@contextmanager
def _session(folder: Path) -> Iterator[Session]:
    engine = make_engine(find_settings(folder).database_url)
    try:
        with session_factory(engine).begin() as session:
            yield session
    finally:
        engine.dispose()


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    until = datetime.fromtimestamp(key.expires_at, tz=UTC).date().isoformat()
    return f"expired {until}" if key.expires_at <= now() else f"valid until {until}"

"""`rft-server keys`: make, list and revoke API keys."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from sqlalchemy import select

from core import keys
from core.clock import now
from core.errors import NotFound
from core.models import ApiKey, Project
from core.stack.access import project_for_key, record_key, transaction
from core.stack.options import Folder, one_line

keys_app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)
_DAY_S = 24 * 60 * 60
_MAX_DAYS = 36_500
_SCOPE_HELP = f"One of {', '.join(keys.SCOPES)}; may be repeated, default all."


@keys_app.command()
def create(
    name: Annotated[
        str, typer.Argument(help="What the key is for.", callback=one_line)
    ] = "default",
    project: Annotated[
        str, typer.Option(help="Name or id; a new name makes one.", callback=one_line)
    ] = "default",
    scope: Annotated[list[str] | None, typer.Option(help=_SCOPE_HELP)] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=_MAX_DAYS, help="Days until it expires.")
    ] = None,
    folder: Folder = Path(".rft"),
) -> None:
    """Make a key and print its secret; it cannot be shown again."""
    with transaction(folder) as session:
        row = project_for_key(session, project)
        key, secret = keys.create_key(
            session,
            row.id,
            name,
            scopes=scope or [keys.ALL],
            expires_at=now() + days * _DAY_S if days else None,
        )
        record_key(session, "created", key)
    typer.echo(secret)


@keys_app.command(name="list")
def list_keys(folder: Folder = Path(".rft")) -> None:
    """List all keys, without their secrets."""
    with transaction(folder) as session:
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
    with transaction(folder) as session:
        key = session.get(ApiKey, key_id)
        if key is None:
            raise NotFound(f"There is no key {key_id!r}; `rft-server keys list` shows them.")
        if key.revoked_at is None:
            keys.revoke_key(session, key)
            record_key(session, "deleted", key)
    Console(highlight=False).print(f"Revoked {key_id}.")


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    until = datetime.fromtimestamp(key.expires_at, tz=UTC).date().isoformat()
    return f"expired {until}" if key.expires_at <= now() else f"valid until {until}"

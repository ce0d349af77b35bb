"""`rft-server projects`: make, list, rename, limit and archive projects."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import select

from core import projects
from core.audit import record_command
from core.errors import InvalidRequest
from core.limits import LIMIT_NAMES, UNLIMITED, Limits, usage
from core.models import Project
from core.stack.access import transaction
from core.stack.environment import find_settings
from core.stack.options import Folder, one_line

projects_app = typer.Typer(
    help="Make, list, rename, limit and archive projects.", no_args_is_help=True
)
Named = Annotated[str, typer.Argument(help="Id or name, as `projects list` shows them.")]
_LIMITS_HELP = f"As name=number, name={UNLIMITED} or name=default; {', '.join(LIMIT_NAMES)}."


@projects_app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the project is called.", callback=one_line)],
    folder: Folder = Path(".rft"),
) -> None:
    """Make a project and print its id."""
    with transaction(folder) as session:
        project = projects.create_project(session, name)
        record_command(session, "project.created", project)
    typer.echo(project.id)


@projects_app.command(name="list")
def list_projects(folder: Folder = Path(".rft")) -> None:
    """List all projects."""
    with transaction(folder) as session:
        rows = session.scalars(select(Project).order_by(Project.created_at, Project.seq)).all()
    for row in rows:
        state = "active" if row.archived_at is None else "archived"
        typer.echo("  ".join((row.id, row.name, state)))


@projects_app.command()
def rename(
    project: Named,
    name: Annotated[str, typer.Argument(help="The new name.", callback=one_line)],
    folder: Folder = Path(".rft"),
) -> None:
    """Give a project another name."""
    with transaction(folder) as session:
        row = projects.find_project(session, project)
        row.name = name
        session.flush()
        record_command(session, "project.updated", row)
    typer.echo(f"{row.id} is now called {name}.")


@projects_app.command()
def archive(project: Named, folder: Folder = Path(".rft")) -> None:
    """End a project: its keys are refused from now on, what it stores stays."""
    with transaction(folder) as session:
        row = projects.find_project(session, project)
        projects.archive_project(session, row)
        record_command(session, "project.archived", row)
    typer.echo(f"Archived {row.id}.")


@projects_app.command()
def limits(
    project: Named,
    changes: Annotated[list[str] | None, typer.Argument(help=_LIMITS_HELP)] = None,
    folder: Folder = Path(".rft"),
) -> None:
    """Set limits of a project, and show them all with what is used."""
    server = Limits.of(find_settings(folder))
    with transaction(folder) as session:
        row = projects.find_project(session, project)
        if changes:
            projects.change_limits(row, dict(_change(each) for each in changes))
            session.flush()
            record_command(session, "rate_limit.updated", row)
        valid, used = server.changed(row.limits), usage(session, row.id)
    for name in LIMIT_NAMES:
        limit = getattr(valid, name)
        set_by = "project" if name in (row.limits or {}) else "server"
        so_far = getattr(used, name, None)
        typer.echo(
            f"{name}  {UNLIMITED if limit is None else limit}  set by {set_by}"
            + ("" if so_far is None else f"  used {so_far}")
        )


def _change(text: str) -> tuple[str, int | str | None]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidRequest(f"{text!r} is no limit; write name=number, as live_jobs=4.")
    if value == "default":
        return name, None
    return name, int(value) if value.isascii() and value.isdigit() else value

"""The `rft-server` command."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from sqlalchemy.exc import DBAPIError

from core import migrate as migration
from core.errors import RftError
from core.stack import doctor as checks
from core.stack.environment import find_settings
from core.stack.export import export_model
from core.stack.failures import sentence
from core.stack.keys_cli import keys_app
from core.stack.options import Folder
from core.stack.ports import LOCALHOST
from core.stack.projects_cli import projects_app
from core.stack.stack import Stack
from core.store import ObjectStore

app = typer.Typer(
    name="rft-server",
    help="Run and look after an rft-service installation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(keys_app, name="keys")
app.add_typer(projects_app, name="projects")

Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Port of API and dashboard; default 8000 or free."),
]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")]


@app.command()
def up(folder: Folder = Path(".rft"), host: Host = LOCALHOST, port: Port = None) -> None:
    """Start the whole service in one folder and keep it running until Ctrl-C."""
    out = Console(highlight=False, soft_wrap=True, markup=False)
    # SIGINT too: a shell that starts this in the background has it ignored.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    try:
        with Stack.start(folder, host=host, port=port, report=out.print) as stack:
            if not stack.has_keys():
                out.print(f"\nAPI key (shown only now): {stack.create_key()}")
            out.print(f"API        {stack.api_url}")
            out.print(f"Dashboard  {stack.dashboard_url}")
            out.print(f"Data       {stack.folder}")
            out.print(f"Stop with Ctrl-C or `kill {os.getpid()}`.")
            stack.wait()
    except KeyboardInterrupt:
        out.print("Stopped.")


@app.command()
def demo(
    folder: Folder = Path(".rft"),
    seed: Annotated[int, typer.Option(help="Seed of the training job.")] = 1,
) -> None:
    """Train the example model from start to finish and show what it gained."""
    module = "examples.support.demo"
    arguments = [sys.executable, "-m", module, "--dir", str(folder), "--seed", str(seed)]
    os.execv(sys.executable, arguments)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="Name of a trained model or checkpoint, ft:….")],
    out: Annotated[Path, typer.Option(help="Folder to write into.")] = Path("exports"),
    merged: Annotated[bool, typer.Option(help="Fold an adapter into its base model.")] = False,
    folder: Folder = Path(".rft"),
) -> None:
    """Write a trained model to an ordinary folder, in Hugging Face layout."""
    written = export_model(find_settings(folder), model, out, merged=merged)
    Console(soft_wrap=True).print(str(written))


@app.command()
def migrate(folder: Folder = Path(".rft")) -> None:
    """Bring the database up to date; with RFT_DATABASE_URL set, also make the missing bucket."""
    settings = find_settings(folder)
    migration.upgrade(settings.database_url)
    if os.environ.get("RFT_DATABASE_URL"):  # an embedded stack makes its bucket when it starts
        ObjectStore.from_settings(settings).ensure_bucket()
    Console().print("The database is up to date.")


@app.command()
def doctor(folder: Folder = Path(".rft")) -> None:
    """Check packages, models, disk, ports and servers; exit 1 when something is wrong."""
    out = Console(highlight=False, soft_wrap=True, markup=False)
    wrong = False
    for check in checks.examine(folder.resolve()):
        wrong = wrong or not check.ok
        out.print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<10}{check.text}")
    if wrong:
        raise typer.Exit(1)


def main() -> None:
    """Run the command; every expected failure becomes one sentence and exit code 1."""
    try:
        app()
    except (RftError, DBAPIError, OSError) as error:
        out = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
        out.print(sentence(error))
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

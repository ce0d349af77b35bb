"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path, typer.Option("--dir", help="Folder that holds the stack's data, logs and secrets.")
]

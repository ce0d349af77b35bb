"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

#: The longest name of a project or a key, in characters.
_LONGEST = 100


def one_line(name: str) -> str:
    """Return a name that fits into a list; raises `BadParameter` for any other."""
    if not (name.strip() and name.splitlines() == [name] and len(name) <= _LONGEST):
        raise typer.BadParameter(f"it must be one line of 1 to {_LONGEST} characters.")
    return name


Folder = Annotated[
    Path, typer.Option("--dir", help="Folder that holds the stack's data, logs and secrets.")
]

"""Start our programs as processes of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from core.settings import Settings

ROOT = Path(__file__).parents[2]


def environment(settings: Settings) -> dict[str, str]:
    """The variables that give a process these settings."""
    values = {}
    for name, value in settings:
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        if value is not None:
            values[f"RFT_{name.upper()}"] = str(value)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "client")])
    return {**os.environ, **values, "PYTHONPATH": paths}


@contextmanager
def program(
    *command: str, settings: Settings, log: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``python COMMAND…`` until the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment(settings) | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()

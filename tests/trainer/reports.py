"""What a trainer that runs inside the test says on its channel."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.channel import Channel
from trainer.errors import Paused
from trainer.run import run


def reports_of(job_dir: Path) -> list[dict[str, Any]]:
    """Run a job to its end; what the trainer raises is raised."""
    lines = io.StringIO()
    run(job_dir, Channel(lines, None))
    return _read(lines)


def reports_until_paused(job_dir: Path, *, saying: str) -> list[dict[str, Any]]:
    """Ask a job to pause before it starts, and run it until it does."""
    lines = io.StringIO()
    channel = Channel(lines, None)
    channel.pause_requested.set()
    with pytest.raises(Paused, match=saying):
        run(job_dir, channel)
    return _read(lines)


def _read(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]

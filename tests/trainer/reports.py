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


class _Asking(io.StringIO):
    """Asks for a pause once a report with certain fields was written."""

    def __init__(self, after: dict[str, Any]) -> None:
        super().__init__()
        self._after = after
        self.channel = Channel(self, None)
        if not after:
            self.channel.pause_requested.set()

    def write(self, line: str) -> int:
        if self._after.items() <= json.loads(line).items():
            self.channel.pause_requested.set()
        return super().write(line)


def reports_until_paused(job_dir: Path, *, saying: str, **after: Any) -> list[dict[str, Any]]:
    """Ask a job to pause after a report with these fields, or before it starts; run it until then.

    Args:
        saying: what the end must say.
    """
    lines = _Asking(after)
    with pytest.raises(Paused, match=saying):
        run(job_dir, lines.channel)
    return _read(lines)


def _read(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]

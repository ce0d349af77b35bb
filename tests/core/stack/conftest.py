"""Running `rft-server` in this process."""

import sys

import pytest

from core.stack import cli, environment
from tests.core.stack.commands import Command, Result


@pytest.fixture(autouse=True)
def no_outside_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the servers that the environment of the test run may name."""
    for name in environment.EMBEDDED:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `rft-server ARGUMENTS` in this process."""

    def run(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["rft-server", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return Result(int(end.value.code or 0), captured.out, captured.err)

    return run

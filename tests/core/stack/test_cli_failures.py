"""What goes wrong in a command is one sentence with the way out, never a traceback."""

import errno
import os
import shutil
import sqlite3
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from core.stack import doctor as checks
from core.stack import environment
from core.stack.stack import MIN_FREE_BYTES, Stack
from tests.core.stack.commands import Command

Usage = namedtuple("Usage", "total used free")


def fail_with(error: Exception) -> Callable[..., None]:
    """A function that does nothing but raise."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


PARTS = ("broker", "store", "serving")
COMMANDS = (("migrate",), ("keys", "list"), ("export", "ft:a"))
BAD = (
    ("RFT_LEASE_TTL_S", "1"),
    ("RFT_MAX_UPLOAD_BYTES", "much"),
    ("RFT_SERVING_OPTIONS", "--it's"),
)
BAD_DATABASES = (
    ("RFT_DATABASE_URL", "nonsense"),
    ("RFT_DATABASE_URL", "mysql://rft:hidden@db/rft"),
    ("RFT_DATABASE_URL", "postgresql://rft:hidden@db:port/rft"),
)


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        *((("up",), *bad) for bad in BAD),
        *((arguments, *bad) for arguments in COMMANDS for bad in (*BAD, *BAD_DATABASES)),
    ],
)
def test_a_bad_setting_is_one_sentence(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    name: str,
    value: str,
) -> None:
    (tmp_path / "rft.db").touch()
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(environment, "choose_ports", lambda _: dict.fromkeys(PARTS, 9))
    result = command(*arguments, "--dir", str(tmp_path))
    assert result.code == 1
    assert name in result.err
    assert result.err.count("\n") == 1
    assert "hidden" not in result.err


def test_doctor_names_a_bad_setting_and_checks_what_needs_none(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_LEASE_TTL_S", "1")
    result = command("doctor", "--dir", str(tmp_path))
    lines = {line.split()[1]: line for line in result.out.splitlines()}
    assert result.code == 1
    assert lines["settings"].startswith("FAIL")
    assert "RFT_LEASE_TTL_S must be at least twice" in lines["settings"]
    assert set(lines) == {"packages", "disk", "sandbox", "settings"}


def test_doctor_says_which_sandbox_there_is(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line() -> str:
        out = command("doctor", "--dir", str(tmp_path)).out
        [found] = [each for each in out.splitlines() if each.split()[1:2] == ["sandbox"]]
        return found

    assert "tier process: Landlock ABI" in line()
    monkeypatch.setenv("RFT_SANDBOX_PYTHON", "/nowhere/python3")
    assert line().startswith("FAIL")
    assert "python graders are refused" in line()


def test_a_database_without_tables_is_told_to_migrate(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.db'}")
    result = command("keys", "list")
    assert result.code == 1
    assert "run `rft-server migrate`" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(code, os.strerror(code), "/data/x") for code in (errno.ENOSPC, errno.EDQUOT)),
        OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full")),
    ],
)
def test_a_full_disk_is_one_sentence(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Stack, "start", fail_with(error))
    result = command("up", "--dir", str(tmp_path))
    assert result.code == 1
    assert result.err == "The disk is full; free some space and run the command again.\n"


def test_a_file_that_may_not_be_read_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", "/data/rft.db")
    monkeypatch.setattr(Stack, "start", fail_with(denied))
    assert command("up", "--dir", str(tmp_path)).err == "/data/rft.db: Permission denied.\n"


@pytest.mark.parametrize(("spare", "ok"), [(0, True), (-1, False)])
def test_doctor_looks_at_the_disk_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int, ok: bool
) -> None:
    asked: list[Path] = []

    def usage(path: Path) -> Usage:
        asked.append(path)
        return Usage(0, 0, MIN_FREE_BYTES + spare)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    check = checks.check_disk(tmp_path / "not" / "yet")
    assert (check.name, check.ok, asked) == ("disk", ok, [tmp_path])
    assert f"1.0 GiB free at {tmp_path}" in check.text
    assert ok or "free some, or name another folder" in check.text

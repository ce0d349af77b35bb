"""Every version of Landlock that the kernel can play, the filter making up for the old ones."""

import os
from pathlib import Path

import pytest

from graders.sandbox.jail import landlock
from graders.sandbox.jail.libc import PR_SET_NO_NEW_PRIVS, prctl
from graders.sandbox.jail.policy import Filters


def tried(version: int, own: Path, other: Path) -> str:
    """What a process confined to one folder manages to do to the other, a letter each."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
            ruleset = landlock.Ruleset(landlock.Handled.everything(version))
            ruleset.allow(str(own), landlock.OWN)
            ruleset.enforce()
            filters = Filters(listener=False)
            filters.confine_zygote()
            filters.confine_child(os.getpid())
            os.write(writing, "".join(_attempts(own, other)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as file:
        return file.read()


def _attempts(own: Path, other: Path) -> list[str]:
    target, mine = str(other / "file"), str(own / "mine")
    attempts = {
        "r": lambda: os.open(target, os.O_RDONLY),
        "w": lambda: os.open(target, os.O_WRONLY),
        "t": lambda: os.truncate(target, 0),
        "o": lambda: os.open(target, os.O_TRUNC),
        "c": lambda: os.open(target + "2", os.O_CREAT),
        "u": lambda: os.unlink(target),
        "m": lambda: os.rename(target, mine + "2"),
        "n": lambda: os.rename(mine, target),
        "l": lambda: os.link(target, mine + "3"),
        "d": lambda: os.listdir(other),
        # What must go on working.
        "W": lambda: os.write(os.open(mine, os.O_CREAT | os.O_RDWR | os.O_TRUNC), b"x"),
        "T": lambda: os.ftruncate(os.open(mine, os.O_RDWR), 0),
        "D": lambda: os.mkdir(own / "folder"),
        "R": lambda: os.rename(mine, mine + "4"),
    }
    done = []
    for letter, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        done.append(letter)
    return done


@pytest.mark.parametrize("version", range(1, landlock.abi() + 1))
def test_only_its_own_folder(tmp_path: Path, version: int) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (other / "file").write_text("untouched")
    (own / "mine").write_text("mine")
    assert tried(version, own, other) == "WTDR"
    assert (other / "file").read_text() == "untouched"

"""What an attack is aimed at: files, processes, sockets, all of the user that attacks."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.graders.attacks.users import TOKEN

LOOPBACK = "127.0.0.1"


class Arena:
    """Targets within reach of one user; each is made when it is first asked for."""

    def __init__(self, uid: int) -> None:
        self._uid = uid
        self.folder = Path(tempfile.mkdtemp(prefix="rft-arena-", dir="/tmp"))
        self._give(self.folder)

    def _give(self, path: Path) -> Path:
        if os.getuid() != self._uid:
            os.chown(path, self._uid, self._uid)
        return path

    @cached_property
    def secret(self) -> str:
        """A file with the token in it."""
        path = self.folder / "secret.txt"
        path.write_text(TOKEN)
        return str(self._give(path))

    @cached_property
    def target(self) -> str:
        """A file that the user may change."""
        path = self.folder / "target.txt"
        path.write_text("untouched")
        os.utime(path, (1_000_000, 1_000_000))
        path.chmod(0o640)
        return str(self._give(path))

    @property
    def target_is_harmed(self) -> bool:
        """Whether the file was changed, moved or removed."""
        path = self.folder / "target.txt"
        if not path.exists():
            return True
        found = path.stat()
        changed = found.st_mode & 0o777 != 0o640 or found.st_mtime != 1_000_000
        return changed or path.read_text() != "untouched" or found.st_nlink != 1

    @cached_property
    def outbox(self) -> str:
        """An empty folder that the user may write to."""
        path = self.folder / "outbox"
        path.mkdir()
        return str(self._give(path))

    @property
    def outbox_is_harmed(self) -> bool:
        """Whether anything came to lie in the folder."""
        return bool(os.listdir(self.outbox))

    @cached_property
    def victim(self) -> "subprocess.Popen[bytes]":
        """A process of the user's, with the token in its environment."""
        same = os.getuid() == self._uid
        switch: dict[str, Any] = {} if same else {"user": self._uid, "group": self._uid}
        return subprocess.Popen(["/bin/sleep", "60"], env={"SECRET": TOKEN}, **switch)

    @property
    def victim_is_harmed(self) -> bool:
        """Whether the process died, or was stopped, slowed down or limited."""
        with open(f"/proc/{self.victim.pid}/stat") as file:
            state, *rest = file.read().rpartition(")")[2].split()
        with open(f"/proc/{self.victim.pid}/limits") as file:
            limited = any(line.startswith("Max open files") and " 7 " in line for line in file)
        policy, nice = rest[37], rest[15]
        affinity = os.sched_getaffinity(self.victim.pid) != os.sched_getaffinity(0)
        return state not in "SRD" or limited or policy != "0" or nice != "0" or affinity

    @cached_property
    def tcp(self) -> socket.socket:
        """A listening TCP socket."""
        return self._listening(socket.AF_INET, (LOOPBACK, 0))

    @cached_property
    def unix(self) -> socket.socket:
        """A listening Unix socket with a name in the file system."""
        path = self.folder / "socket"
        found = self._listening(socket.AF_UNIX, str(path))
        self._give(path)
        return found

    @cached_property
    def abstract(self) -> socket.socket:
        """A listening Unix socket without a file."""
        return self._listening(socket.AF_UNIX, f"\0rft-arena-{self.folder.name}")

    @cached_property
    def udp(self) -> socket.socket:
        """A bound UDP socket."""
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.bind((LOOPBACK, 0))
        found.setblocking(False)
        return found

    @staticmethod
    def _listening(family: int, address: Any) -> socket.socket:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.bind(address)
        found.listen()
        found.setblocking(False)
        return found

    @staticmethod
    def was_reached(listening: socket.socket) -> bool:
        """Whether somebody connected, or sent a datagram."""
        try:
            if listening.type == socket.SOCK_DGRAM:
                listening.recv(10)
            else:
                listening.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Remove everything."""
        made = vars(self)
        for name in ("tcp", "unix", "abstract", "udp"):
            if name in made:
                made[name].close()
        if "victim" in made:
            self.victim.kill()
            self.victim.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _nothing(_arena: Arena) -> dict[str, Any]:
    return {}


def _no_harm(_arena: Arena) -> bool:
    return False


@dataclass(frozen=True)
class Attack:
    """Code that reaches for something; `grade` returns 1 when it has got it.

    `item` is what it is told of the arena, `harm` looks whether the arena has suffered.
    `root_only`: an ordinary user could not do it anyway. `optional`: not every kernel has what it
    is about; where the attack fails without the sandbox too, there is nothing to show.
    """

    name: str
    body: str
    item: Callable[[Arena], dict[str, Any]] = _nothing
    harm: Callable[[Arena], bool] = _no_harm
    root_only: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return self.name

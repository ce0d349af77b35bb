"""One stack per folder: a lock that also says who holds it and where it answers."""

import fcntl
import json
import os
import time
from pathlib import Path

from core.errors import ConfigurationError

#: Seconds to wait for the children of a killed stack to end; longer than any child's grace.
_LEFTOVERS_S = 40.0


class FolderLock:
    """An advisory lock on `folder/lock`.

    The guards of all children hold the lock's descriptor as well. So after `kill -9` of the stack
    the folder stays locked until the last of its children is gone.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises ConfigurationError naming the running stack."""
        self.folder = folder
        self._file = (folder / "lock").open("a+")
        deadline = time.monotonic() + _LEFTOVERS_S
        while not self._try():
            holder = read_holder(folder)
            if _is_alive(holder.get("pid")) or time.monotonic() > deadline:
                self._file.close()
                raise ConfigurationError(_already_running(folder, holder))
            time.sleep(0.1)
        self.publish(url=None)

    @property
    def descriptor(self) -> int:
        """The descriptor that keeps the lock."""
        return self._file.fileno()

    def publish(self, *, url: str | None) -> None:
        """Write this process's id and the stack's URL for whoever finds the folder locked."""
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "url": url}))
        self._file.flush()

    def release(self) -> None:
        """Give the folder back."""
        self._file.truncate(0)
        self._file.close()

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def read_holder(folder: Path) -> dict[str, object]:
    """Return `pid` and `url` of the stack that holds the folder; empty when none is running."""
    try:
        holder = json.loads((folder / "lock").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return holder if isinstance(holder, dict) and _is_alive(holder.get("pid")) else {}


def _is_alive(pid: object) -> bool:
    return isinstance(pid, int) and Path(f"/proc/{pid}").exists()


def _already_running(folder: Path, holder: dict[str, object]) -> str:
    where = f"at {holder['url']}" if holder.get("url") else "and still starting"
    if not holder:
        return f"Processes of an earlier stack in {folder} do not end; find them with `ps` first."
    return (
        f"A stack is already running in {folder} (process {holder['pid']}, {where});"
        f" use it, stop it with `kill {holder['pid']}`, or name another folder with --dir."
    )

"""A call's private folder: emptied before each call, measured while it runs.

What lies in it was made by code that nobody trusts: no link is followed, no depth overflows, and
a folder that cannot be read counts as cheating.
"""

import os
import stat
import struct

#: Most files and folders, and the deepest nesting, before a call is stopped.
MAX_ENTRIES = 10_000
MAX_DEPTH = 64

#: The answer of a measurement: bytes.
MEASURED = struct.Struct("=Q")
#: What `measure` reports for too many entries, too deep or unreadable folders.
TOO_MUCH = (1 << 63) - 1

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def wipe(path: str) -> None:
    """Remove all that lies in the folder; nobody else may be at work in it. Raises `OSError`."""
    top = os.open(path, _FOLDER)
    try:
        fresh = 0
        while entries := _entries(top):
            for name, is_folder in entries:
                if is_folder:
                    fresh = _lift(top, name, fresh)
                    os.rmdir(name, dir_fd=top)
                else:
                    os.unlink(name, dir_fd=top)
    finally:
        os.close(top)


def _lift(top: int, name: str, fresh: int) -> int:
    """Empty one folder: remove its files, move its folders to the top, so that depth is no matter.

    `fresh` counts the names given there.
    """
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        while entries := _entries(folder):
            for child, is_folder in entries:
                if is_folder:
                    os.chmod(child, 0o700, dir_fd=folder)
                    fresh = _free_name(top, fresh)
                    os.rename(child, f".{fresh}", src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    return fresh


def _free_name(top: int, fresh: int) -> int:
    while True:
        fresh += 1
        try:
            os.lstat(f".{fresh}", dir_fd=top)
        except FileNotFoundError:
            return fresh


def measure(path: str, pid: int) -> int:
    """Bytes on disk of a folder and of the deleted files that process `pid` holds open.

    `TOO_MUCH` when there are too many entries, they lie too deep or cannot be read.
    """
    try:
        return _measured(path, None, MAX_DEPTH, [MAX_ENTRIES]) + _deleted(pid)
    except (PermissionError, OverflowError):
        return TOO_MUCH


def _measured(path: str, parent: int | None, depth: int, left: list[int]) -> int:
    if depth == 0:
        raise OverflowError
    folder = os.open(path, _FOLDER, dir_fd=parent)
    total = 0
    try:
        for name, is_folder in _entries(folder):
            left[0] -= 1
            if left[0] < 0:
                raise OverflowError
            try:
                if is_folder:
                    total += _measured(name, folder, depth - 1, left)
                else:
                    total += os.lstat(name, dir_fd=folder).st_blocks * 512
            except (FileNotFoundError, NotADirectoryError):
                continue  # Gone by now: the code inside is at work meanwhile.
    finally:
        os.close(folder)
    return total


def _deleted(pid: int) -> int:
    """Bytes of files without a name that the process holds open."""
    total = 0
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            total += _size_if_deleted(f"/proc/{pid}/fd/{number}")
    except (FileNotFoundError, ProcessLookupError):
        pass  # The process has ended.
    return total


def _size_if_deleted(link: str) -> int:
    try:
        found = os.stat(link)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    deleted = stat.S_ISREG(found.st_mode) and found.st_nlink == 0
    return found.st_blocks * 512 if deleted else 0


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names, and whether each is a folder (not a link to one)."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append((entry.name, entry.is_dir(follow_symlinks=False)))
            # One more than is ever counted, so that a flood of files cannot fill memory.
            if len(found) > MAX_ENTRIES:
                break
    return found

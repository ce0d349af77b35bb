"""Landlock: which files a process may touch, whatever its user may.

A ruleset names what is allowed; everything else that the kernel's Landlock knows of is denied,
also TCP and, from ABI 6, abstract Unix sockets and signals to processes outside.
"""

import os
import struct

from .libc import (
    LANDLOCK_ADD_RULE,
    LANDLOCK_CREATE_RULESET,
    LANDLOCK_RESTRICT_SELF,
    Memory,
    syscall,
)

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << n for n in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (
    1 << n for n in range(6, 13)
)
REFER, TRUNCATE, IOCTL_DEV = (1 << n for n in range(13, 16))

READ = READ_FILE | READ_DIR
#: What a private folder allows: files and folders, no links, no sockets, no devices, no programs.
OWN = READ | WRITE_FILE | TRUNCATE | MAKE_REG | MAKE_DIR | REMOVE_FILE | REMOVE_DIR | REFER
#: A device such as /dev/null.
DEVICE = READ_FILE | WRITE_FILE

#: What can be allowed on a file that is not a folder.
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

#: Binding and connecting; abstract Unix sockets and signals.
_TCP, _SCOPED = 0b11, 0b11

_ASK_VERSION = 1
_PATH_BENEATH = 1


def abi() -> int:
    """The version of Landlock that the kernel speaks; 0 when it has none or it is off."""
    try:
        return syscall(LANDLOCK_CREATE_RULESET, 0, 0, _ASK_VERSION)
    except OSError:
        return 0


class Handled:
    """What a ruleset of one ABI version denies unless it is allowed."""

    def __init__(self, files: int, attributes: bytes) -> None:
        self.files, self.attributes = files, attributes

    @classmethod
    def everything(cls, version: int) -> "Handled":
        """All that this version can deny."""
        bits = 13 + (version >= 2) + (version >= 3) + (version >= 5)
        return cls.of(version, files=(1 << bits) - 1, tcp=_TCP)

    @classmethod
    def neighbours(cls, version: int) -> "Handled":
        """Processes outside: tracing them, and from ABI 6 signals and abstract Unix sockets.

        Tracing is denied by every ruleset; something has to be handled for there to be one.
        """
        return cls.of(version, files=MAKE_BLOCK, tcp=0)

    @classmethod
    def of(cls, version: int, *, files: int, tcp: int) -> "Handled":
        """These rights, and whatever this version has to keep processes apart."""
        if version >= 6:
            return cls(files, struct.pack("QQQ", files, tcp, _SCOPED))
        if version >= 4:
            return cls(files, struct.pack("QQ", files, tcp))
        return cls(files, struct.pack("Q", files))


class Ruleset:
    """What a process may touch; made once, put into force by any number of processes."""

    def __init__(self, handled: Handled) -> None:
        """Make a ruleset that allows nothing of what it handles; raises `OSError`."""
        self._handled = handled
        attributes = Memory(handled.attributes)
        size = len(handled.attributes)
        self.fd = syscall(LANDLOCK_CREATE_RULESET, attributes.address, size)

    def allow(self, path: str, rights: int) -> None:
        """Allow `rights` on a file, or on a folder and all beneath; an absent one is left out."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        try:
            self.allow_open(fd, rights)
        finally:
            os.close(fd)

    def allow_open(self, fd: int, rights: int) -> None:
        """Allow `rights` on what is open as `fd`; raises `OSError`."""
        rights &= self._handled.files
        if not _is_folder(fd):
            rights &= _OF_FILES
        rule = Memory(struct.pack("=Qi", rights, fd))
        syscall(LANDLOCK_ADD_RULE, self.fd, _PATH_BENEATH, rule.address)

    def enforce(self) -> None:
        """Restrict this process for good; needs NO_NEW_PRIVS. Raises `OSError`."""
        syscall(LANDLOCK_RESTRICT_SELF, self.fd)

    def close(self) -> None:
        """Forget the ruleset; processes under it stay restricted."""
        os.close(self.fd)


def _is_folder(fd: int) -> bool:
    return os.fstat(fd).st_mode & 0o170000 == 0o040000

"""System calls that Python has no function for, through ctypes."""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers and addresses alike go as registers; left to ctypes, an int would be cut to 32 bits.
_LIBC.syscall.argtypes = (ctypes.c_long,) * 5
_LIBC.syscall.restype = ctypes.c_long
_LIBC.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)

SIGKILL = 9
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# The kernel gives new system calls one number on all architectures; these are among them.
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446


def syscall(number: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Make a system call with numbers and addresses; raises `OSError`."""
    result = int(_LIBC.syscall(number, first, second, third, fourth))
    if result == -1:
        raise _error()
    return result


def prctl(option: int, argument: int = 0) -> int:
    """Call prctl(2) with one argument; raises `OSError`."""
    result = int(_LIBC.prctl(option, argument, 0, 0, 0))
    if result == -1:
        raise _error()
    return result


class Memory:
    """Bytes at an address, for as long as this object lives."""

    def __init__(self, data: bytes) -> None:
        self.held = ctypes.create_string_buffer(data, len(data))
        self.address = ctypes.addressof(self.held)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))

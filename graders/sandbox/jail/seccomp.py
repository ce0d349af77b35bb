"""Seccomp: which system calls a process may make, as a program of the kernel's classic BPF.

A `Program` is written by hand here, so nothing but the kernel has to be trusted for it.
"""

import os
import struct

from .libc import Memory, syscall
from .syscalls import AUDIT_ARCH, machine, numbers

#: One instruction: code, jump if true, jump if false, constant.
Instruction = tuple[int, int, int, int]

ALLOW = 0x7FFF0000
KILL = 0x80000000
NOTIFY = 0x7FC00000

_LOAD, _RETURN, _AND, _ALWAYS, _EQUAL, _ABOVE, _AT_LEAST, _ANY_BIT = (
    *(0x20, 0x06, 0x54),
    *(0x05, 0x15, 0x25, 0x35, 0x45),
)
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
#: Numbers from here on belong to the x32 interface of x86_64, which has calls of its own.
_X32 = 0x40000000

_SET_FILTER = 1
_NEW_LISTENER = 8


def errno(number: int) -> int:
    """The action that makes a call fail with this error."""
    return 0x00050000 | number


def give(action: int) -> list[Instruction]:
    """End with this action."""
    return [(_RETURN, 0, 0, action)]


def one_of(argument: int, values: list[int], yes: int, no: int) -> list[Instruction]:
    """`yes` when the argument (its low 32 bits, as the kernel reads it) is one of the values."""
    tests = [(_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return [_load(argument), *tests, *give(no), *give(yes)]


def masked(argument: int, mask: int, value: int, *, yes: list[Instruction]) -> list[Instruction]:
    """`yes` when the argument, bits outside `mask` left out, is `value`; else go on."""
    return [_load(argument), (_AND, 0, 0, mask), (_EQUAL, 0, len(yes), value), *yes]


def opening(flags: int, *, no_tmpfile: int, no_truncation: int) -> list[Instruction]:
    """Opening a file: not a nameless one, and truncating only what is opened for writing.

    A nameless file escapes the watch over the disk. Landlock before ABI 3 knows no truncation, and
    a file can be truncated while it is opened for reading.
    """
    tmpfile, truncate, access = 0o20000000, 0o1000, 0o3
    return [
        _load(flags),
        (_ANY_BIT, 0, 1, tmpfile),
        *give(no_tmpfile),
        (_ANY_BIT, 0, 4, truncate),
        (_AND, 0, 0, access),
        (_EQUAL, 2, 0, os.O_WRONLY),
        (_EQUAL, 1, 0, os.O_RDWR),
        *give(no_truncation),
        *give(ALLOW),
    ]


class _Segment:
    """Neighbouring calls with one answer."""

    def __init__(self, first: int, last: int, answer: list[Instruction]) -> None:
        self.first, self.last, self.answer = first, last, answer

    def code(self) -> list[Instruction]:
        length = len(self.answer)
        if self.first == self.last:
            return [(_EQUAL, 0, length, self.first), *self.answer]
        return [
            (_AT_LEAST, 0, length + 1, self.first),
            (_ABOVE, length, 0, self.last),
            *self.answer,
        ]


def program(arch: str, answers: dict[str, list[Instruction]], default: int) -> bytes:
    """The filter: an answer for each call named, `default` for every other.

    A call of another architecture, as a 32-bit program would make it, kills the process.
    """
    start: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, AUDIT_ARCH[arch]),
        *give(KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if arch == "x86_64":
        start += [(_AT_LEAST, 0, 1, _X32), *give(KILL)]
    by_name = numbers(arch)
    # A call may be missing on one architecture, but a name that is on none is a slip.
    assert all(any(name in numbers(each) for each in AUDIT_ARCH) for name in answers)
    known = {by_name[name]: answer for name, answer in answers.items() if name in by_name}
    code = start + _search(_segments(known), default)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


class Installable:
    """A filter in memory, ready to be put into force by this process or one forked from it."""

    def __init__(self, code: bytes) -> None:
        self._code = Memory(code)
        self._header = Memory(struct.pack("@HP", len(code) // 8, self._code.address))
        self._seccomp = numbers(machine())["seccomp"]

    def write(self, places: list[int], value: int) -> None:
        """Write a constant into the code, at these offsets in bytes."""
        for place in places:
            struct.pack_into("=I", self._code.held, place, value)

    def install(self, *, listen: bool) -> int | None:
        """Put it into force for good; returns the listener for `NOTIFY`, or None.

        Raises `OSError`: EBUSY when an outer filter has a listener already.
        """
        flags = _NEW_LISTENER if listen else 0
        result = syscall(self._seccomp, _SET_FILTER, flags, self._header.address)
        return result if listen else None


def _load(argument: int) -> Instruction:
    # Both architectures are little-endian: the low half comes first.
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _segments(known: dict[int, list[Instruction]]) -> list[_Segment]:
    segments: list[_Segment] = []
    for number, answer in sorted(known.items()):
        before = segments[-1] if segments else None
        if before and before.last == number - 1 and before.answer == answer:
            segments[-1] = _Segment(before.first, number, answer)
        else:
            segments.append(_Segment(number, number, answer))
    return segments


def _search(segments: list[_Segment], default: int) -> list[Instruction]:
    """A binary search: the kernel walks the whole filter for every call when it is installed."""
    if len(segments) <= 3:
        return [step for segment in segments for step in segment.code()] + give(default)
    middle = len(segments) // 2
    lower = _search(segments[:middle], default)
    upper = _search(segments[middle:], default)
    split = segments[middle].first
    return [(_AT_LEAST, 0, 1, split), (_ALWAYS, 0, 0, len(lower)), *lower, *upper]

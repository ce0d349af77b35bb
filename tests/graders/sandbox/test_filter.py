"""The seccomp program, run by an interpreter of our own, for both architectures."""

import os
import re
import struct
from pathlib import Path

import pytest

from graders.sandbox.jail import policy, syscalls
from graders.sandbox.jail.seccomp import ALLOW, KILL, NOTIFY, errno, program

ARCHES = list(syscalls.AUDIT_ARCH)
EPERM, ENOSYS = errno(1), errno(38)
PID = 4711
THREAD, FORK = 0x3D0F00, 0x01200011


def decide(code: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel does with a call under this filter."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    at, accumulator = 0, 0
    while True:
        operation, yes, no, constant = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, constant)
            case 0x06:
                return int(constant)
            case 0x54:
                accumulator &= constant
            case 0x05:
                at += constant
            case 0x15 | 0x25 | 0x35 | 0x45:
                holds = {
                    0x15: accumulator == constant,
                    0x25: accumulator > constant,
                    0x35: accumulator >= constant,
                    0x45: bool(accumulator & constant),
                }[operation]
                at += yes if holds else no
            case _:
                raise AssertionError(f"instruction {operation:#x}")


def first(arch: str, *, listener: bool = True) -> bytes:
    answers = policy.zygote_answers(arch, listener=listener)
    return program(arch, answers, policy.refusal(listener))


def second(arch: str) -> bytes:
    return program(arch, policy.child_answers(PID), ALLOW)


def both(arch: str, name: str, *arguments: int, listener: bool = True) -> int:
    """What a child meets: the stricter of the two answers, as the kernel ranks them."""
    number = syscalls.numbers(arch)[name]
    codes = (first(arch, listener=listener), second(arch))
    found = [decide(code, syscalls.AUDIT_ARCH[arch], number, *arguments) for code in codes]
    rank = {KILL: 0, ALLOW: 3, NOTIFY: 2}
    return min(found, key=lambda action: rank.get(action, 1))


@pytest.mark.parametrize("arch", ARCHES)
def test_every_call_that_is_not_allowed_is_refused(arch: str) -> None:
    code, known = first(arch), syscalls.allowed(arch)
    special = {"open", "openat", "prlimit64", "prctl", "fcntl", "ioctl"} | set(policy._MAKING)
    fine = set(known.values()) | {
        number for name, number in syscalls.numbers(arch).items() if name in special
    }
    for number in range(1024):
        allowed = decide(code, syscalls.AUDIT_ARCH[arch], number) == ALLOW
        assert allowed <= (number in fine), number
    for number in known.values():
        assert decide(code, syscalls.AUDIT_ARCH[arch], number) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
def test_another_architecture_is_killed(arch: str) -> None:
    i386, arm = 0x40000003, 0x40000028
    for other in {i386, arm, *syscalls.AUDIT_ARCH.values()} - {syscalls.AUDIT_ARCH[arch]}:
        for code in (first(arch), second(arch)):
            assert decide(code, other, syscalls.numbers(arch)["read"]) == KILL
    if arch == "x86_64":
        for number in (0x40000000, 0x40000000 | 39, 0xFFFFFFFF):
            assert decide(first(arch), syscalls.AUDIT_ARCH[arch], number) == KILL


@pytest.mark.parametrize("arch", ARCHES)
def test_threads_are_asked_for_and_processes_refused(arch: str) -> None:
    assert both(arch, "clone", THREAD) == NOTIFY
    assert both(arch, "clone", THREAD, listener=False) == ALLOW
    assert both(arch, "clone", FORK) == EPERM
    for flags in (
        17,
        0,
        FORK | 0x8000,
        THREAD | 0x10000000,
        THREAD & ~0x10000,
        (THREAD << 32) | 17,
    ):
        assert both(arch, "clone", flags) in (NOTIFY, EPERM)
        assert both(arch, "clone", flags, listener=False) == EPERM
    assert both(arch, "clone3") == ENOSYS


@pytest.mark.parametrize("arch", ARCHES)
def test_arguments_decide(arch: str) -> None:
    for name in ("kill", "tgkill"):
        assert both(arch, name, PID) == ALLOW
        for other in (0, 1, PID + 1, 2**32 - 1, 2**32 - PID):
            assert both(arch, name, other) == EPERM
    assert both(arch, "prlimit64", 0) == ALLOW
    assert both(arch, "prlimit64", 1) == NOTIFY
    assert both(arch, "prctl", 15) == ALLOW
    assert both(arch, "prctl", 1) == EPERM
    assert both(arch, "prctl", 4) == NOTIFY
    assert both(arch, "fcntl", 0, 3) == ALLOW
    assert both(arch, "fcntl", 0, 8) == NOTIFY
    assert both(arch, "ioctl", 0, 0x5413) == ALLOW
    assert both(arch, "ioctl", 0, 0x8901) == errno(25)


@pytest.mark.parametrize("arch", ARCHES)
def test_opening(arch: str) -> None:
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        assert both(arch, "openat", 0, 0, flags) == ALLOW
    for flags in (os.O_TRUNC, os.O_TRUNC | 3):
        assert both(arch, "openat", 0, 0, flags) == errno(13)
    assert both(arch, "openat", 0, 0, 0o20000000 | os.O_RDWR) == errno(95)


@pytest.mark.parametrize(
    "name",
    ["socket", "execve", "ptrace", "memfd_create", "io_uring_setup", "mount", "setuid", "bpf"],
)
@pytest.mark.parametrize("arch", ARCHES)
def test_the_worst_are_reported(arch: str, name: str) -> None:
    assert both(arch, name) == NOTIFY
    assert both(arch, name, listener=False) == EPERM


@pytest.mark.parametrize("arch", ARCHES)
def test_what_makes_children_is_taken_from_them(arch: str) -> None:
    for name in ("socketpair", "sendmsg", "recvmsg", "setsid", "seccomp", "fchmodat"):
        assert both(arch, name) == EPERM


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
#: The C library's name for the number that the generic table gives another name.
RENAMED = {"fstatat": "newfstatat", "fstatat64": "newfstatat"}


@pytest.mark.parametrize("arch", ARCHES)
def test_numbers_are_the_kernels(arch: str) -> None:
    if not HEADERS[arch].exists():
        pytest.skip("the kernel's headers are not installed")
    lines = HEADERS[arch].read_text().splitlines()
    found = [re.match(r"#define __NR(?:3264)?_(\w+) (\d+)", line) for line in lines]
    real = {RENAMED.get(m[1], m[1]): int(m[2]) for m in found if m}
    named = syscalls.numbers(arch)
    wrong = {name: n for name, n in named.items() if name in real and real[name] != n}
    assert not wrong
    assert len(set(named) & set(real)) > 150

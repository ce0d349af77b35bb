"""Corners of the kernel: odd calls, other architectures, objects that stay behind, privileges."""

import os

import pytest

from tests.graders.attacks.arena import Attack
from tests.graders.attacks.conftest import Strike

#: Machine code that makes a call of 32-bit x86: eax = number, ebx and ecx = arguments.
INT_80 = """
import mmap
def call32(number, first, second):
    memory = mmap.mmap(-1, 4096, prot=7)
    memory.write(b'\\x53\\x89\\xf8\\x89\\xf3\\x89\\xd1\\xcd\\x80\\x5b\\xc3')
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return ctypes.CFUNCTYPE(*[ctypes.c_int] * 4)(at)(number, first, second)
"""

CALLS = [
    Attack(
        "io_uring",
        "return call('io_uring_setup', 4, ctypes.create_string_buffer(120)) >= 0",
        optional=True,
    ),
    Attack("asynchronous I/O", "return call('io_setup', 1, ctypes.create_string_buffer(8)) == 0"),
    Attack("userfaultfd", "return call('userfaultfd', 1) >= 0", optional=True),
    Attack(
        "BPF",
        # A map from 4 to 8 bytes, with one place.
        "import struct\n"
        "wanted = ctypes.create_string_buffer(struct.pack('IIII', 1, 4, 8, 1), 116)\n"
        "return call('bpf', 0, wanted, 116) >= 0",
        root_only=True,
        optional=True,
    ),
    Attack(
        "performance counters",
        "wanted = ctypes.create_string_buffer(bytes([1, 0, 0, 0, 112]), 112)\n"
        "return call('perf_event_open', wanted, 0, -1, -1, 0) >= 0",
        optional=True,
    ),
    Attack("a key", "return call('add_key', b'user', b'rft', b'x', 1, -3) > 0", optional=True),
    Attack("the session's keys", "return call('keyctl', 0, -3, 1) > 0", optional=True),
    Attack("personality", "call('personality', 0x0040000); return 1"),
    Attack("new namespaces", "call('unshare', 0x20000000); return 1", root_only=True),
    Attack("a user namespace", "call('unshare', 0x10000000); return 1", optional=True),
    Attack(
        "the host name",
        "import socket; socket.sethostname(socket.gethostname()); return 1",
        root_only=True,
    ),
    Attack("writing everything to disk", "return call('sync') == 0"),
    Attack("the kernel's log", "return call(103, 10, 0, 0) >= 0", root_only=True, optional=True),
    Attack("a timer of the kernel", "return call('timerfd_create', 1, 0) >= 0"),
    Attack(
        "a larger pipe", "import fcntl; return fcntl.fcntl(os.pipe()[0], 1031, 1 << 20) >= 1 << 20"
    ),
    Attack(
        "socket as a 32-bit program",
        f"{INT_80}\nreturn call32(359, 1, 1) >= 0",
        optional=True,
    ),
    Attack("the other numbers of x86", "return call(39 | 0x40000000) > 0", optional=True),
]

STAYING = [
    Attack(
        "System V shared memory",
        """
        found = call('shmget', 0, 4096, 0o1600)
        call({'x86_64': 31, 'aarch64': 195}[os.uname().machine], found, 0, 0)
        return 1
        """,
    ),
    Attack(
        "System V messages",
        """
        found = call('msgget', 0, 0o1600)
        call({'x86_64': 71, 'aarch64': 187}[os.uname().machine], found, 0, 0)
        return 1
        """,
    ),
    Attack(
        "System V semaphores",
        """
        found = call('semget', 0, 1, 0o1600)
        call({'x86_64': 66, 'aarch64': 191}[os.uname().machine], found, 0, 0)
        return 1
        """,
    ),
    Attack(
        "a POSIX message queue",
        """
        name = b'rft-' + os.urandom(6).hex().encode()
        call('mq_open', name, os.O_CREAT | os.O_RDWR, 0o600, 0)
        call({'x86_64': 241, 'aarch64': 181}[os.uname().machine], name)
        return 1
        """,
        optional=True,
    ),
    Attack("memory with a descriptor", "return call('memfd_create', b'x', 0) >= 0"),
    Attack("secret memory", "return call('memfd_secret', 0) >= 0", optional=True),
    Attack(
        "shared memory of multiprocessing",
        """
        from multiprocessing import shared_memory
        found = shared_memory.SharedMemory(create=True, size=10)
        found.close()
        found.unlink()
        return 1
        """,
    ),
]

PRIVILEGES = [
    Attack("to be root", "os.setuid(0); return os.getuid() == 0", root_only=True),
    Attack("to have been root", "return 0 in os.getresuid()", root_only=True),
    Attack("other groups", "os.setgroups([0]); return 1", root_only=True),
    Attack(
        "capabilities",
        """
        header = ctypes.create_string_buffer((0x20080522).to_bytes(4, 'little') + bytes(4), 8)
        data = ctypes.create_string_buffer(24)
        libc.capget(header, data)
        return any(data.raw[:4])
        """,
        root_only=True,
    ),
    Attack(
        "to lock memory",
        """
        import mmap
        memory = mmap.mmap(-1, 1 << 16)
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return call('mlock', at, 1 << 16) == 0
        """,
    ),
    Attack(
        "to be spared when memory runs out",
        "open('/proc/self/oom_score_adj', 'w').write('0'); return 1",
    ),
    Attack("to outlive its parent", "libc.prctl(1, 0, 0, 0, 0) and os.abort(); return 1"),
    Attack("to be hidden from its parent", "libc.prctl(4, 0, 0, 0, 0) and os.abort(); return 1"),
    Attack("to be nice no more", "os.nice(-5); return 1", root_only=True),
    Attack(
        "to gain from programs",
        """
        flag = libc.prctl(39, 0, 0, 0, 0)
        return flag == 0
        """,
    ),
    Attack(
        "the clock", "import time; time.clock_settime(0, time.time()); return 1", root_only=True
    ),
]


@pytest.mark.parametrize("attack", CALLS, ids=str)
def test_calls_that_graders_have_no_use_for(strike: Strike, attack: Attack) -> None:
    if "32-bit" in attack.name and os.uname().machine != "x86_64":
        pytest.skip("x86 only")
    strike(attack)


@pytest.mark.parametrize("attack", STAYING, ids=str)
def test_what_would_stay_behind(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("attack", PRIVILEGES, ids=str)
def test_privileges(strike: Strike, attack: Attack) -> None:
    strike(attack)

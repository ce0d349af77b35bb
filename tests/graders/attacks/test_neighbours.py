"""Other processes of the same user: looking into them, stopping them, slowing them down."""

import pytest

from tests.graders.attacks.arena import Arena, Attack
from tests.graders.attacks.conftest import Strike
from tests.graders.attacks.users import TOKEN


def victim(arena: Arena) -> dict[str, object]:
    return {"pid": arena.victim.pid, "token": TOKEN}


def harmed(arena: Arena) -> bool:
    return arena.victim_is_harmed


#: Where in the victim's memory its environment lies, for attacks that read it.
STACK = """
[line] = [each for each in open(f"/proc/{item['pid']}/maps") if '[stack]' in each]
start, end = (int(each, 16) for each in line.split()[0].split('-'))
"""

LOOKING = [
    Attack(
        "its environment",
        "return item['token'] in open(f\"/proc/{item['pid']}/environ\").read()",
        victim,
    ),
    Attack(
        "its command line",
        "return 'sleep' in open(f\"/proc/{item['pid']}/cmdline\").read()",
        victim,
    ),
    Attack("its program", "return bool(os.readlink(f\"/proc/{item['pid']}/exe\"))", victim),
    Attack(
        "its memory as a file",
        f"{STACK}\n"
        "fd = os.open(f\"/proc/{item['pid']}/mem\", os.O_RDONLY)\n"
        "return item['token'].encode() in os.pread(fd, end - start, start)",
        victim,
    ),
    Attack(
        "its memory by process_vm_readv",
        f"{STACK}\n"
        "size = end - start\n"
        "data = ctypes.create_string_buffer(size)\n"
        "import struct\n"
        "here, there = (ctypes.create_string_buffer(struct.pack('QQ', at, size), 16)\n"
        "               for at in (ctypes.addressof(data), start))\n"
        "call('process_vm_readv', item['pid'], here, 1, there, 1, 0)\n"
        "return item['token'].encode() in data.raw",
        victim,
    ),
    Attack(
        "process_vm_writev, wherever",
        "try:\n"
        "    call('process_vm_writev', item['pid'], None, 0, None, 0, 0)\n"
        "except PermissionError:\n"
        "    return 0\n"
        "return 1",
        victim,
    ),
    Attack("ptrace", "call('ptrace', 0x4206, item['pid'], 0, 0); return 1", victim),
    Attack(
        "its descriptors by pidfd_getfd",
        "return call('pidfd_getfd', call('pidfd_open', item['pid'], 0), 0, 0) >= 0",
        victim,
    ),
    Attack(
        "kcmp", "return call('kcmp', os.getpid(), item['pid'], 1, 0, 0) >= 0", victim, optional=True
    ),
    Attack(
        "get_robust_list",
        """
        number = {'x86_64': 274, 'aarch64': 100}[os.uname().machine]
        pointer, size = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
        return call(number, item['pid'], pointer, size) == 0
        """,
        victim,
    ),
    Attack("all processes", "return str(item['pid']) in os.listdir('/proc')", victim),
    Attack(
        "the environment of the parent", "return bool(open(f'/proc/{os.getppid()}/environ').read())"
    ),
]

HARMING = [
    Attack("kill", "os.kill(item['pid'], 9); return 1", victim, harmed),
    Attack("stop", "os.kill(item['pid'], 19); return 1", victim, harmed),
    Attack("tkill", "call('tkill', item['pid'], 9); return 1", victim, harmed),
    Attack("tgkill", "call('tgkill', item['pid'], item['pid'], 9); return 1", victim, harmed),
    Attack(
        "a queued signal",
        """
        import struct
        info = ctypes.create_string_buffer(struct.pack('iii', 12, 0, -1), 128)
        call('rt_sigqueueinfo', item['pid'], 12, info)
        return 1
        """,
        victim,
        harmed,
    ),
    Attack(
        "a signal through a pidfd",
        "call('pidfd_send_signal', call('pidfd_open', item['pid'], 0), 9, None, 0); return 1",
        victim,
        harmed,
    ),
    Attack(
        "a signal as the owner of a pipe",
        """
        import fcntl, time
        reading, writing = os.pipe()
        fcntl.fcntl(reading, fcntl.F_SETOWN, item['pid'])
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(writing, b'x')
        time.sleep(0.05)
        return 1
        """,
        victim,
        harmed,
    ),
    Attack("a signal to the parent", "os.kill(os.getppid(), 0); return 1"),
    Attack(
        "a signal to the group of the parent", "os.killpg(os.getpgid(os.getppid()), 0); return 1"
    ),
    Attack(
        "its resource limits",
        "import resource; resource.prlimit(item['pid'], resource.RLIMIT_NOFILE, (7, 7)); return 1",
        victim,
        harmed,
    ),
    Attack(
        "its priority", "os.setpriority(os.PRIO_PROCESS, item['pid'], 5); return 1", victim, harmed
    ),
    Attack(
        "its processors",
        """
        others = os.sched_getaffinity(item['pid'])
        os.sched_setaffinity(item['pid'], {min(others)})
        return 1
        """,
        victim,
        harmed,
    ),
    Attack(
        "its scheduling",
        """
        os.sched_setscheduler(item['pid'], os.SCHED_BATCH, os.sched_param(0))
        return 1
        """,
        victim,
        harmed,
    ),
    Attack("its disk priority", "call('ioprio_set', 1, item['pid'], 3 << 13); return 1", victim),
]


@pytest.mark.parametrize("attack", LOOKING, ids=str)
def test_looking_into_another_process(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("attack", HARMING, ids=str)
def test_harming_another_process(strike: Strike, attack: Attack) -> None:
    strike(attack)

"""Giving up what a process may do: root's user, capabilities, resources."""

import os
import resource
from contextlib import suppress

from .libc import (
    PR_CAPBSET_DROP,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    Memory,
    prctl,
    syscall,
)
from .syscalls import machine, numbers

#: Capabilities that a kernel may know, with room for new ones.
_CAPABILITIES = 64

#: Of one call: open files, and threads beside those that run on the machine already.
MAX_OPEN_FILES = 256
MAX_PENDING_SIGNALS = 64
MAX_NEW_THREADS = 256


class Limits:
    """What one call may use; memory comes on top of what preloaded packages occupy."""

    def __init__(self, *, memory_bytes: int, disk_bytes: int, cpu_s: int) -> None:
        self.memory_bytes, self.disk_bytes, self.cpu_s = memory_bytes, disk_bytes, cpu_s


def drop_root(uid: int) -> int:
    """Become the unprivileged user `uid` if this is root, and never gain anything again.

    Returns the user id in the end: root without the right to switch stays user 0, but without any
    capability. Raises `OSError`.
    """
    if os.geteuid() == 0:
        _drop_bounding_set()
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        except PermissionError:
            pass  # No CAP_SETUID, as in a container that drops all capabilities.
    _clear_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # Switching users made /proc/self root's; the fork-server has to look into its children there.
    prctl(PR_SET_DUMPABLE, 1)
    return os.geteuid()


def _drop_bounding_set() -> None:
    for capability in range(_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # EINVAL: the kernel knows no more; EPERM: there is none to drop.


def _clear_capabilities() -> None:
    """Empty the permitted, effective, inheritable and with them the ambient set."""
    version_3 = Memory((0x20080522).to_bytes(4, "little") + bytes(4))
    nothing = Memory(bytes(24))
    syscall(numbers(machine())["capset"], version_3.address, nothing.address)


def total_threads() -> int:
    """Threads of the whole machine: an upper bound of those that any one user has."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].split("/")[1])
    except (OSError, ValueError, IndexError):
        return 4096


def address_space() -> int:
    """Bytes of address space that this process occupies."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limit_resources(limits: Limits) -> None:
    """Set the limits of one slot's calls, beyond what this process occupies. Raises `OSError`."""
    hard = {
        resource.RLIMIT_AS: address_space() + limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.disk_bytes,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: MAX_PENDING_SIGNALS,
    }
    for which, value in hard.items():
        _, ceiling = resource.getrlimit(which)
        if ceiling != resource.RLIM_INFINITY:
            value = min(value, ceiling)
        resource.setrlimit(which, (value, value))


def die_first() -> None:
    """When the machine's memory runs out, let the kernel end the calls before all else."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def limit_threads() -> None:
    """Limit threads where nobody counts them one by one.

    The kernel counts all threads that a user has on the machine, so this is no more than a brake.
    """
    count = total_threads() + MAX_NEW_THREADS
    _, ceiling = resource.getrlimit(resource.RLIMIT_NPROC)
    if ceiling == resource.RLIM_INFINITY or ceiling > count:
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))

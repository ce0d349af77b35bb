"""Which system calls the code of a grader may make.

What is not named here is refused: with a listener the call is reported and fails with EPERM,
without one it only fails. `syscalls` lists what is always allowed.

There are two filters. The first confines a zygote and all that it forks, and lets it go on making
children; the second takes that away from a child. A filter is costly to install, the first one
most, so that a call should not pay for it.
"""

import errno as codes

from . import syscalls
from .seccomp import (
    ALLOW,
    NOTIFY,
    Installable,
    Instruction,
    errno,
    give,
    masked,
    one_of,
    opening,
    program,
)

#: What pthread_create asks for: exactly a thread, with nothing of its own.
_THREAD = 0x003D0F00
#: What fork asks for. glibc's fork is clone too, and a child would outlive the kill of its parent.
_FORK = 0x01200011
#: A flag that musl adds and the kernel ignores.
_NOT_DETACHED = 0xFFFFFFFF & ~0x00400000

#: Stands for a child's own id until the filter is put into force; no process has it.
_ANY_PID = 0x7FEDCBA9

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_GET_NAME = 1, 15, 16
#: Duplicating, flags, record locks. Not F_SETOWN, F_SETSIG and F_SETLEASE: they send signals.
_FCNTL = [0, 1, 2, 3, 4, 5, 6, 7, 1030]
#: FIOCLEX, FIONCLEX, FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ.
_IOCTL = [0x5451, 0x5450, 0x5421, 0x541B, 0x5401, 0x5413]

#: Refused without a report: libraries try these and go on without.
_QUIET = {
    codes.ENOSYS: (
        *("clone3", "openat2", "epoll_pwait2", "membarrier", "futex_waitv", "mincore"),
        *("fchmodat2", "get_mempolicy", "arch_prctl"),
    ),
    codes.EPERM: ("chmod", "fchmod", "utime", "utimes", "futimesat", "utimensat", "getpriority"),
    codes.ENOTSUP: (
        *("getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr"),
    ),
    codes.ENOLCK: ("flock",),
}

#: What a zygote does and its children must not.
_MAKING = (
    *("socketpair", "sendmsg", "recvmsg", "setsid", "fchmodat", "landlock_restrict_self"),
    *("seccomp", "kill", "tgkill"),
)


def zygote_answers(arch: str, *, listener: bool) -> dict[str, list[Instruction]]:
    """The answers of the first filter to every call that is not simply refused."""
    refuse = refusal(listener)
    tmpfile, truncation = errno(codes.EOPNOTSUPP), errno(codes.EACCES)
    found = {name: give(ALLOW) for name in (*syscalls.allowed(arch), *_MAKING)}
    found |= {name: give(errno(number)) for number, names in _QUIET.items() for name in names}
    # With a listener each thread is asked for, so that they can be counted.
    thread = NOTIFY if listener else ALLOW
    return found | {
        "open": opening(1, no_tmpfile=tmpfile, no_truncation=truncation),
        "openat": opening(2, no_tmpfile=tmpfile, no_truncation=truncation),
        "clone": [
            *masked(0, _NOT_DETACHED, _THREAD, yes=give(thread)),
            *masked(0, 0xFFFFFFFF, _FORK, yes=give(ALLOW)),
            *give(refuse),
        ],
        "prlimit64": one_of(0, [0], ALLOW, refuse),
        "prctl": one_of(0, [_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_GET_NAME], ALLOW, refuse),
        "fcntl": one_of(1, _FCNTL, ALLOW, refuse),
        "ioctl": one_of(1, _IOCTL, ALLOW, errno(codes.ENOTTY)),
    }


def child_answers(pid: int) -> dict[str, list[Instruction]]:
    """The answers of the second filter, for the process `pid`; it allows every other call."""
    no = errno(codes.EPERM)
    return {name: give(no) for name in _MAKING} | {
        "clone": [*masked(0, 0xFFFFFFFF, _FORK, yes=give(no)), *give(ALLOW)],
        "prctl": one_of(0, [_PR_SET_PDEATHSIG], no, ALLOW),
        "kill": one_of(0, [pid], ALLOW, no),
        "tgkill": one_of(0, [pid], ALLOW, no),
    }


def refusal(listener: bool) -> int:
    """How a call is refused that no rule names."""
    return NOTIFY if listener else errno(codes.EPERM)


class Filters:
    """Both filters, compiled once; they need NO_NEW_PRIVS."""

    def __init__(self, *, listener: bool) -> None:
        """`listener`: have what is refused reported to whoever gets the listener."""
        arch = syscalls.machine()
        self.listener = listener
        answers = zygote_answers(arch, listener=listener)
        self._zygote = Installable(program(arch, answers, refusal(listener)))
        code = program(arch, child_answers(_ANY_PID), ALLOW)
        mark = _ANY_PID.to_bytes(4, "little")
        self._places = [at for at in range(4, len(code), 8) if code[at : at + 4] == mark]
        self._child = Installable(code)

    def confine_zygote(self) -> int | None:
        """Confine this process and all that it forks; returns the listener, if there is one.

        Raises `OSError`: EBUSY when an outer filter has a listener already.
        """
        return self._zygote.install(listen=self.listener)

    def confine_child(self, pid: int) -> None:
        """Confine this process, whose id is `pid`, some more; raises `OSError`."""
        self._child.write(self._places, pid)
        self._child.install(listen=False)

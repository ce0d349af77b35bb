"""Notices of the kernel about system calls that a child's filter does not allow by itself.

Each notice holds the calling thread until it is answered, which is work for the service: a call
may cause `MAX_NOTICES` of them and is ended then.
"""

import errno
import fcntl
import struct
from collections import Counter
from contextlib import suppress

from graders.sandbox.jail import syscalls

#: Most notices of one call that are answered.
MAX_NOTICES = 1_000
#: Most threads that one call may start, all together.
MAX_THREADS = 256

_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_GO_ON = 1

_ARCH = syscalls.machine()
_NAMES = {number: name for name, number in syscalls.numbers(_ARCH).items()}
#: The filter asks about a clone that makes a thread; all others it lets us refuse.
_THREAD_FLAG = 0x00010000


class Notices:
    """What one child asked for; `refused` counts the calls by name."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self._left = MAX_NOTICES
        self._threads = 0

    def answer(self, listener: int) -> bool:
        """Answer one notice; False when there were too many.

        Those count, too, whose caller was taken back by a signal or killed meanwhile.
        """
        self._left -= 1
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice)
        except OSError:
            return self._left > 0
        number, _, _, call, _, _, flags, *_ = _NOTICE.unpack(notice)
        error, go_on = self._judge(call, flags)
        with suppress(OSError):  # Gone since it was read.
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, -error, go_on))
        return self._left > 0

    def _judge(self, call: int, flags: int) -> tuple[int, int]:
        name = _NAMES.get(call, f"system call {call}")
        if name == "clone" and flags & _THREAD_FLAG:
            self._threads += 1
            # The kernel reads the flags again, but from registers that nobody can change.
            return (0, _GO_ON) if self._threads <= MAX_THREADS else (errno.EAGAIN, 0)
        self.refused[name] += 1
        return errno.EPERM, 0

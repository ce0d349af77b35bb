"""The fork-server: a warm Python without secrets, from which locked children are forked.

It is started with a clean environment and one inherited descriptor, its control socket, and never
sees a source, a sample or a result: those travel between the service and the child. So there is
nothing in its memory that one child could learn of another.

It forks one zygote per slot (see `zygote`); a call is a child of a zygote. To the service it says

    a dict          once, as Python writes it: what this server is, or `{"refused": sentence}`
    Z               for each slot, in order: its zygote's control socket comes along

and the only order is to measure what the process of a slot has on disk: slot, process id, and the
end of a pipe for the answer.
"""

import gc
import marshal
import os
import struct
from _socket import AF_UNIX, SOCK_SEQPACKET, socket, socketpair

from . import fds, landlock, privileges, runtime, tmpdir, zygote
from .libc import PR_SET_CHILD_SUBREAPER, SIGKILL, prctl
from .lockdown import Confinement, Unavailable, make_rulesets, require_landlock, usable_filters

CONTROL = 3
MEASURE = struct.Struct("=II")
ZYGOTE = b"Z"


class Options:
    """What the service asks of a fork-server."""

    def __init__(
        self,
        *,
        slots: int,
        preload: list[str],
        inspect: bool,
        tmp_dir: str,
        uid: int,
        limits: dict[str, int],
    ) -> None:
        self.slots, self.preload, self.inspect = slots, preload, inspect
        self.tmp_dir, self.uid, self.limits = tmp_dir, uid, limits


def main(control_fd: int, packed: str) -> None:
    """Serve until the control socket ends; everything made here ends with it.

    `packed` holds the options, see `forkserver`, in marshal's format as hexadecimal digits.
    """
    options = Options(**marshal.loads(bytes.fromhex(packed)))
    control = socket(fileno=os.dup2(control_fd, CONTROL))
    if control_fd != CONTROL:
        os.close(control_fd)
    try:
        server = _Server(control, options)
    except Unavailable as error:
        control.send(repr({"refused": str(error)}).encode())
        return
    try:
        server.serve()
    finally:
        server.end()


class _Server:
    def __init__(self, control: socket, options: Options) -> None:
        self._control = control
        self._helpers: list[int] = []
        if options.inspect:
            # Now, while this package can surely be read.
            __import__(f"{__package__}.inspection")
        self._version = require_landlock()
        runtime.add_packages()
        self._opened = runtime.open_readable()
        uid = privileges.drop_root(options.uid)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._kept = runtime.make_importable(self._opened)
        took = runtime.preload(options.preload)
        filters = usable_filters()
        self._base, self._folders = _make_folders(options.tmp_dir, options.slots, uid)
        try:
            self._rulesets, neighbours = make_rulesets(self._version, self._folders, self._opened)
        except Unavailable:
            self._remove_folders()
            raise
        limits = privileges.Limits(**options.limits)
        self._confinement = Confinement(limits, filters, neighbours)
        self.hello = {
            "landlock": self._version,
            "listener": self._confinement.filters.listener,
            "uid": uid,
            "preloaded": took,
            "folder": self._base,
        }

    def serve(self) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()
        self._control.send(repr(self.hello).encode())
        for folder, ruleset in zip(self._folders, self._rulesets, strict=True):
            self._make_zygote(folder, ruleset)
        while True:
            packet, answers = fds.receive(self._control, MEASURE.size, 1)
            if not packet:
                return
            slot, pid = MEASURE.unpack(packet)
            self._measure(self._folders[slot], pid, answers[0])

    def end(self) -> None:
        """Kill everything that was forked, and remove what was written."""
        # Children of a dead zygote die with it and become this process's, to be waited for.
        for pid in self._helpers:
            os.kill(pid, SIGKILL)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        self._remove_folders()

    def _remove_folders(self) -> None:
        for folder in self._folders:
            tmpdir.wipe(folder)
            os.rmdir(folder)
        os.rmdir(self._base)

    def _make_zygote(self, folder: str, ruleset: landlock.Ruleset) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            zygote.main(theirs, self._confinement, folder=folder, ruleset=ruleset, kept=self._kept)
        self._helpers.append(pid)
        fds.send(self._control, ZYGOTE, ours.fileno())
        ours.close()
        theirs.close()
        ruleset.close()

    def _measure(self, folder: str, process: int, answer: int) -> None:
        """In a process of its own: it may take a while, and the names it reads are not ours."""
        self._forget_ended()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.write(answer, tmpdir.MEASURED.pack(tmpdir.measure(folder, process)))
                code = 0
            finally:
                os._exit(code)
        os.close(answer)
        self._helpers.append(pid)

    def _forget_ended(self) -> None:
        """Wait for processes that have ended, so that they do not pile up."""
        self._helpers = [pid for pid in self._helpers if os.waitpid(pid, os.WNOHANG)[0] == 0]


def _make_folders(parent: str, count: int, uid: int) -> tuple[str, list[str]]:
    base = os.path.join(parent, f"rft-sandbox-{os.urandom(8).hex()}")
    folders = [os.path.join(base, str(slot)) for slot in range(count)]
    try:
        for folder in [base, *folders]:
            os.mkdir(folder, 0o700)
    except OSError as error:
        raise Unavailable(f"The sandbox cannot make its folder as user {uid}: {error}.") from error
    return base, folders

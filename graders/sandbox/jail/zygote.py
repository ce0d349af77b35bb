"""The process that one slot's children are forked from, confined to the slot already.

It sends the listener for refused system calls first, or a message without one. Orders come on its
control socket, a byte each: end the child, if there is one, and make another. The answer is how the
old one ended (as waitpid has it, -1 for none) and the process id of the new one, with its channel
and its output attached.
"""

import gc
import os
import struct
from _socket import AF_UNIX, SOCK_SEQPACKET, SOCK_STREAM, socket, socketpair

from . import child, fds, harness, landlock, runtime, tmpdir, wire
from .libc import PR_SET_PDEATHSIG, SIGKILL, prctl
from .lockdown import Confinement

LISTENER = b"L"
MADE = struct.Struct("=iI")
#: The zygote's control socket, once its descriptors are in order.
CONTROL = 4
_RULESET = 6
#: Above every descriptor there is.
_ALL = 4096


def main(
    control: socket,
    confinement: Confinement,
    *,
    folder: str,
    ruleset: landlock.Ruleset,
    kept: int,
) -> None:
    """Make children until the control socket ends, then end; does not return."""
    code = 1
    try:
        prctl(PR_SET_PDEATHSIG, SIGKILL)
        control = _order_descriptors(control, confinement, ruleset, kept)
        _prepare(folder)
        listener = confinement.enter_slot(folder, ruleset)
        fds.send(control, LISTENER, *([] if listener is None else [listener]))
        os.closerange(_RULESET, runtime.FIRST_FD)
        _serve(control, confinement, folder)
        code = 0
    except OSError as error:
        fds.send(control, f"The sandbox cannot confine a process: {error}.".encode())
    finally:
        os._exit(code)


def _order_descriptors(
    control: socket, confinement: Confinement, ruleset: landlock.Ruleset, kept: int
) -> socket:
    """Keep input, the control socket, rulesets and `kept` folders of Python; close all else."""
    wanted = (control.fileno(), confinement.neighbours.fd, ruleset.fd)
    high = [os.dup2(fd, runtime.FIRST_FD - 1 - n) for n, fd in enumerate(wanted)]
    for fd, number in zip(high, (CONTROL, child.NEIGHBOURS, _RULESET), strict=True):
        os.dup2(fd, number)
    confinement.neighbours.fd, ruleset.fd = child.NEIGHBOURS, _RULESET
    os.closerange(_RULESET + 1, runtime.FIRST_FD)
    os.closerange(runtime.FIRST_FD + kept, _ALL)
    control.detach()
    return socket(AF_UNIX, SOCK_SEQPACKET, 0, CONTROL)


def _prepare(folder: str) -> None:
    # Pipes, as the children will have there: Python asks once whether its output can seek.
    for end in os.pipe():
        os.dup2(end, 1)
        os.dup2(end, 2)
        os.close(end)
    child.prepare_python(folder)
    _warm_up()
    gc.collect()
    gc.freeze()


def _warm_up() -> None:
    """Do once what a child will do, so that what is set up on first use is set up here."""
    source = "def grade(sample, item):\n    return float(sample['a'] == item['a'])\n"
    answer, question = os.pipe()
    os.write(question, wire.request(bytes(wire.NONCE_BYTES), source, {"a": "b"}, {"a": "b"}))
    os.dup2(answer, child.CHANNEL)
    for fd in (answer, question):
        os.close(fd)
    nonce, source, arguments = wire.read_request(child.CHANNEL)
    for text in (source, "def grade(sample, item):\n    return 1 / 0\n"):
        body = harness.run(text, *arguments)
        wire.write_reply(os.open(os.devnull, os.O_WRONLY), nonce, body)


def _serve(control: socket, confinement: Confinement, folder: str) -> None:
    made, me = 0, os.getpid()
    while os.read(CONTROL, 1):
        status = _end(made) if made else -1
        tmpdir.wipe(folder)
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        output_end, output = os.pipe()
        # In place before there is a child, whose time is dearer.
        for target in (1, 2):
            os.dup2(output, target)
        os.dup2(theirs.fileno(), child.CHANNEL)
        made = os.fork()
        if made == 0:
            child.main(confinement, parent=me)
        fds.send(control, MADE.pack(status, made), ours.fileno(), output_end)
        for fd in (output_end, output):
            os.close(fd)
        for held in (ours, theirs):
            held.close()
        for target in (1, 2, child.CHANNEL):
            os.dup2(0, target)
    if made:
        _end(made)
    tmpdir.wipe(folder)


def _end(pid: int) -> int:
    """Kill a child's process group and wait for it.

    Until it is waited for, its id cannot mean another process.
    """
    try:
        os.killpg(pid, SIGKILL)
    except ProcessLookupError:
        os.kill(pid, SIGKILL)  # It has not made its group yet.
    return os.waitpid(pid, 0)[1]

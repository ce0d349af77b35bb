"""What a fresh child does: lock itself down, run one call, end.

It comes to life under the limits and the Landlock ruleset of its slot, with its descriptors in
place. Whatever can be done before a child is forked is done there: here it costs each call.
"""

import gc
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper

from . import harness, runtime, wire
from .lockdown import Confinement

#: The child's end of its channel to the service; from here on all is the zygote's.
CHANNEL = 3
NEIGHBOURS = 5

#: What the child says first, locked down.
READY = b"R"


def main(confinement: Confinement, *, parent: int) -> None:
    """Serve one call, then end; does not return, and nothing of the fork-server runs any more."""
    code = 1
    try:
        confinement.enter_call(parent)
        os.write(CHANNEL, READY)
        os.closerange(CHANNEL + 1, runtime.FIRST_FD)
        gc.enable()
        serve()
        code = 0
    except EOFError:
        code = 0  # The service needs this child no more.
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        # No finaliser, no atexit, no thread of the code gets a say from here on.
        os._exit(code)


def prepare_python(folder: str) -> None:
    """Set up what the code will find: variables, arguments, output."""
    os.environ.update({"TMPDIR": folder, "HOME": folder})
    sys.argv[:] = [harness.FILENAME]
    sys.stdout, sys.stderr = _printing_to(1), _printing_to(2)


def _printing_to(fd: int) -> TextIOWrapper:
    """Text by the line, so that something is there to see when the call has to be killed."""
    raw = BufferedWriter(FileIO(fd, "w", closefd=False))
    return TextIOWrapper(raw, "utf-8", errors="backslashreplace", line_buffering=True)


def serve() -> None:
    """Answer the request on the channel; raises `EOFError` when there comes none."""
    printing = (sys.stdout, sys.stderr)
    nonce, source, arguments = wire.read_request(CHANNEL)
    if arguments:
        if "numpy.random" in sys.modules:
            # Each child would draw the same numbers. `random` sees to itself.
            sys.modules["numpy.random"].seed()
        body = harness.run(source, *arguments)
    else:
        body = sys.modules[f"{__package__}.inspection"].reply(source)
    # What the code put in their place first: it may write through them.
    for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), *printing):
        _flush(stream)
    wire.write_reply(CHANNEL, nonce, body)


def _flush(stream: object) -> None:
    """Print what a stream holds back; one that the code has spoilt costs no result."""
    try:
        stream.flush()  # type: ignore[attr-defined]
    except BaseException:  # the stream may be the code's own, which may raise anything
        return

"""What travels between the service and a locked child.

Request, on the child's channel: a length, then in marshal's format nonce, source, sample and item;
         without sample and item the source is only looked at
Reply:   the nonce, a length, then one of
             V double                       the value that grade returned
             N text                         grade returned something that is no number: what
             X memory line type \\0 message  it raised; whether memory ran out, the line or 0
             J text                         JSON, what `inspection.inspect` found

Anything else is a failure: what prints into a descriptor that it guessed does not know the nonce.
A child that is under the control of its code can forge a reply, so the service reads it with care;
the request is the service's own, and read by nobody who has more rights than its writer.
"""

import marshal
import os
import struct

LENGTH = struct.Struct(">I")
RAISED = struct.Struct("=?I")
NONCE_BYTES = 16

#: Largest reply, in bytes after the length.
MAX_REPLY_BYTES = 65_536
#: marshal's format that every Python reads.
_FORMAT = 2


def request(nonce: bytes, source: str, *arguments: object) -> bytes:
    """The bytes of a request; raises `ValueError` for what is not plain data."""
    body = marshal.dumps([nonce, source, *arguments], _FORMAT)
    return LENGTH.pack(len(body)) + body


def read_request(fd: int) -> tuple[bytes, str, list[dict[str, object]]]:
    """Wait for the request; raises `EOFError` when the service has closed the channel."""
    (length,) = LENGTH.unpack(_exactly(fd, LENGTH.size))
    nonce, source, *arguments = marshal.loads(_exactly(fd, length))
    return nonce, source, arguments


def write_reply(fd: int, nonce: bytes, body: bytes) -> None:
    """Write the whole reply; raises `OSError`."""
    left = nonce + LENGTH.pack(len(body)) + body
    while left:
        left = left[os.write(fd, left) :]


def _exactly(fd: int, count: int) -> bytes:
    pieces = []
    while count:
        piece = os.read(fd, min(count, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        count -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)

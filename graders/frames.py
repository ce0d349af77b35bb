"""Frames on the grader's socket: a 4-byte big-endian length, then that many bytes of UTF-8 JSON.

Request: `{"id": int, "sample": {…}, "item": {…}, "group": {"id": int, "size": int} | null}`
Reply:   `{"id": int, "outcome": {…}, "latency_s": float, "traces": […]}`, in the order in which
         grading ends
Refusal: `{"id": null, "error": "sentence"}`, after which the connection is closed

The end of the requests ends the connection: what is not graded by then is dropped.
"""

import json
import struct
from typing import Any

from graders.errors import WireError

#: Largest frame, in bytes without the length.
MAX_FRAME_BYTES = 64 * 1024 * 1024

HEADER = struct.Struct(">I")


def encode(message: dict[str, Any]) -> bytes:
    """Write one frame; raises `WireError` when the message is no JSON or too large."""
    try:
        body = json.dumps(message, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"The message is not JSON: {error}.") from error
    if len(body) > MAX_FRAME_BYTES:
        raise WireError(f"A frame may hold {MAX_FRAME_BYTES:,} bytes, not {len(body):,}.")
    return HEADER.pack(len(body)) + body


def length(header: bytes | bytearray) -> int:
    """Read a frame's length; raises `WireError` when it is too large."""
    (count,) = HEADER.unpack(header)
    if count > MAX_FRAME_BYTES:
        raise WireError(f"A frame may hold {MAX_FRAME_BYTES:,} bytes, not {count:,}.")
    return int(count)


def decode(body: bytes) -> dict[str, Any]:
    """Read a frame's body; raises `WireError` when it is not a JSON object."""
    try:
        message = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise WireError(f"The frame is not JSON: {error}.") from error
    if not isinstance(message, dict):
        raise WireError(f"The frame must be an object, not {type(message).__name__}.")
    return message

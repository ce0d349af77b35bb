"""Descriptors that travel with a message over a Unix socket."""

import struct
from _socket import CMSG_LEN, SCM_RIGHTS, SOL_SOCKET, socket


def send(channel: socket, data: bytes, *fds: int) -> None:
    """Send a message with copies of these descriptors; raises `OSError`."""
    attached = [(SOL_SOCKET, SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
    channel.sendmsg([data], attached)


def receive(channel: socket, size: int, count: int) -> tuple[bytes, list[int]]:
    """Receive a message and at most `count` descriptors, which are the caller's to close."""
    data, attached, _, _ = channel.recvmsg(size, CMSG_LEN(4 * count))
    fds: list[int] = []
    for _, _, packed in attached:
        fds += struct.unpack(f"{len(packed) // 4}i", packed)
    return data, fds

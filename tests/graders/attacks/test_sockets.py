"""The network, and other programs of this machine: sockets of every family."""

import socket

import pytest

from tests.graders.attacks.arena import Attack
from tests.graders.attacks.conftest import Strike


def name_of(listening: socket.socket) -> dict[str, object]:
    name = listening.getsockname()
    return {"name": name.decode() if isinstance(name, bytes) else name}


REACHING = [
    Attack(
        "TCP",
        "import socket; socket.create_connection(item['name'], 2).send(b'x'); return 1",
        lambda arena: name_of(arena.tcp),
        lambda arena: arena.was_reached(arena.tcp),
    ),
    Attack(
        "TCP by bare system calls",
        """
        import struct
        fd = call('socket', 2, 1, 0)
        address = struct.pack('=H', 2) + struct.pack('>H', item['name'][1]) + bytes([127, 0, 0, 1])
        call('connect', fd, ctypes.create_string_buffer(address, 16), 16)
        return 1
        """,
        lambda arena: name_of(arena.tcp),
        lambda arena: arena.was_reached(arena.tcp),
    ),
    Attack(
        "UDP",
        """
        import socket
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', tuple(item['name']))
        return 1
        """,
        lambda arena: name_of(arena.udp),
        lambda arena: arena.was_reached(arena.udp),
    ),
    Attack(
        "a Unix socket",
        "import socket; socket.socket(socket.AF_UNIX).connect(item['name']); return 1",
        lambda arena: name_of(arena.unix),
        lambda arena: arena.was_reached(arena.unix),
    ),
    Attack(
        "an abstract Unix socket",
        "import socket; socket.socket(socket.AF_UNIX).connect(item['name']); return 1",
        lambda arena: name_of(arena.abstract),
        lambda arena: arena.was_reached(arena.abstract),
    ),
    Attack(
        "a name server",
        "import socket; socket.getaddrinfo('localhost', 80); return 1",
    ),
]

#: Family, type; made and thrown away.
FAMILIES = {
    "unix stream": (1, 1),
    "unix datagram": (1, 2),
    "unix seqpacket": (1, 5),
    "inet stream": (2, 1),
    "inet datagram": (2, 2),
    "inet raw": (2, 3),
    "inet6 stream": (10, 1),
    "inet6 datagram": (10, 2),
    "netlink route": (16, 3),
    "packet": (17, 3),
    "alg": (38, 5),
    "vsock": (40, 1),
}

OTHERS = [
    Attack(
        "any family there is",
        """
        made = 0
        for family in range(1, 46):
            for kind in (1, 2, 3, 5):
                try:
                    os.close(call('socket', family, kind, 0))
                    made = 1
                except OSError:
                    pass
        return made
        """,
    ),
    Attack("a pair of sockets", "import socket; socket.socketpair(); return 1"),
    Attack(
        "a listening socket",
        """
        import socket
        listening = socket.socket()
        listening.bind(('127.0.0.1', 0))
        listening.listen()
        return 1
        """,
    ),
    Attack(
        "an abstract name",
        """
        import socket
        socket.socket(socket.AF_UNIX).bind(chr(0) + 'rft-' + os.urandom(8).hex())
        return 1
        """,
    ),
    Attack(
        "sending a descriptor along",
        """
        import array, struct
        if os.getcwd() == '/':
            import socket
            ours, theirs = socket.socketpair()
            fds = [ours.fileno()]
        else:
            fds = list(range(3, 256))
        byte = ctypes.create_string_buffer(b'x', 1)
        vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(byte), 1), 16)
        control = ctypes.create_string_buffer(struct.pack('Qiii', 20, 1, 1, 0) + bytes(4), 24)
        where = [ctypes.addressof(each) for each in (vector, control)]
        packed = struct.pack('QIxxxxQQQQi', 0, 0, where[0], 1, where[1], 24, 0)
        message = ctypes.create_string_buffer(packed, 56)
        for fd in fds:
            try:
                if call('sendmsg', fd, message, 0) == 1:
                    return 1
            except OSError:
                pass
        return 0
        """,
    ),
    Attack(
        "receiving descriptors",
        """
        import struct
        if os.getcwd() == '/':
            import socket
            ours, theirs = socket.socketpair()
            ours.send(b'x')
            fds = [theirs.fileno()]
        else:
            fds = list(range(3, 256))
        byte = ctypes.create_string_buffer(1)
        vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(byte), 1), 16)
        packed = struct.pack('QIxxxxQQQQi', 0, 0, ctypes.addressof(vector), 1, 0, 0, 0)
        message = ctypes.create_string_buffer(packed, 56)
        for fd in fds:
            try:
                if call('recvmsg', fd, message, 0x40) == 1:
                    return 1
            except OSError:
                pass
        return 0
        """,
    ),
]


@pytest.mark.parametrize("attack", REACHING, ids=str)
def test_reaching_a_program_of_this_machine(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("family", FAMILIES)
def test_making_a_socket(strike: Strike, family: str) -> None:
    number, kind = FAMILIES[family]
    body = f"return call('socket', {number}, {kind}, 0) >= 0"
    # Raw ones are root's, and some families are not in every kernel.
    strike(Attack(family, body, optional=family.split()[0] not in ("unix", "inet") or kind == 3))


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_other_ways_with_sockets(strike: Strike, attack: Attack) -> None:
    strike(attack)

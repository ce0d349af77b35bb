"""Running programs, and processes that outlive the call."""

import pytest

from tests.graders.attacks.arena import Arena, Attack
from tests.graders.attacks.conftest import Strike
from tests.graders.attacks.users import TOKEN


def outbox(arena: Arena) -> dict[str, object]:
    return {"path": arena.outbox}


def harmed(arena: Arena) -> bool:
    return arena.outbox_is_harmed


#: `clone3` with no flag at all and SIGCHLD at the end, which is fork.
CLONE3 = """
import struct
arguments = ctypes.create_string_buffer(struct.pack('8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64)
child = call('clone3', arguments, 64)
"""

MAKING = [
    Attack("fork", "child = os.fork()\nif not child: os._exit(0)\nreturn child > 0"),
    Attack("clone3", f"{CLONE3}\nif not child: os._exit(0)\nreturn child > 0"),
    Attack(
        "clone as a sibling",
        "child = call('clone', 0x8000 | 17, 0, 0, 0, 0)\n"
        "if not child: os._exit(0)\n"
        "return child > 0",
    ),
    Attack(
        "clone into new namespaces",
        "child = call('clone', 0x20000000 | 17, 0, 0, 0, 0)\n"
        "if not child: os._exit(0)\n"
        "return child > 0",
        root_only=True,
    ),
    Attack(
        "fork while looking like a thread",
        # CLONE_THREAD in the upper half, which the kernel does not read.
        "child = call('clone', (0x10000 << 32) | 17, 0, 0, 0, 0)\n"
        "if not child: os._exit(0)\n"
        "return child > 0",
    ),
    Attack(
        "a bounded fork bomb",
        """
        made = 0
        for _ in range(3):
            child = os.fork()
            if not child:
                os._exit(0)
            made += 1
        return made == 3
        """,
    ),
    Attack(
        "multiprocessing",
        """
        import multiprocessing
        process = multiprocessing.get_context('fork').Process(target=print)
        process.start()
        process.join()
        return process.exitcode == 0
        """,
    ),
    Attack(
        "a process that outlives the call",
        """
        import time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(0.1)
                open(item['path'] + '/late', 'w')
            os._exit(0)
        time.sleep(0.3)
        return 1
        """,
        outbox,
        harmed,
    ),
]

RUNNING = [
    Attack("os.system", "os.system('touch ' + item['path'] + '/x'); return 0", outbox, harmed),
    Attack(
        "subprocess",
        "import subprocess; subprocess.run(['touch', item['path'] + '/x']); return 0",
        outbox,
        harmed,
    ),
    Attack(
        "posix_spawn",
        """
        child = os.posix_spawn('/bin/touch', ['touch', item['path'] + '/x'], {})
        os.waitpid(child, 0)
        return 0
        """,
        outbox,
        harmed,
    ),
    Attack(
        "vfork",
        "import subprocess\n"
        "subprocess.Popen(['/bin/touch', item['path'] + '/x'], close_fds=False).wait()\n"
        "return 0",
        outbox,
        harmed,
    ),
    Attack("execve", "os.execv('/bin/touch', ['touch', item['path'] + '/x'])", outbox, harmed),
    Attack(
        "execveat",
        """
        path = os.open('/bin/touch', os.O_PATH)
        text = lambda s: ctypes.c_char_p(s.encode())
        argv = (ctypes.c_char_p * 3)(b'touch', (item['path'] + '/x').encode(), None)
        call('execveat', path, b'', argv, (ctypes.c_char_p * 1)(None), 0x1000)
        """,
        outbox,
        harmed,
    ),
    Attack(
        "a program in memory",
        """
        fd = call('memfd_create', b'x', 0)
        os.write(fd, open('/bin/touch', 'rb').read())
        os.execv(f'/proc/self/fd/{fd}', ['touch', item['path'] + '/x'])
        """,
        outbox,
        harmed,
    ),
    Attack(
        "a program in its own folder",
        """
        import shutil, tempfile
        path = os.path.join(tempfile.mkdtemp(), 'touch')
        shutil.copyfile('/bin/touch', path)
        os.chmod(path, 0o700)
        os.execv(path, ['touch', item['path'] + '/x'])
        """,
        outbox,
        harmed,
    ),
    Attack(
        "a pickle",
        """
        import pickle
        class Touch:
            def __reduce__(self):
                return os.system, ('touch ' + item['path'] + '/x',)
        pickle.loads(pickle.dumps(Touch()))
        return 0
        """,
        outbox,
        harmed,
    ),
    Attack(
        "a pseudo terminal",
        """
        import pty
        pty.spawn(['/bin/touch', item['path'] + '/x'])
        return 0
        """,
        outbox,
        harmed,
    ),
]

INHERITED = [
    Attack(
        "the environment",
        "return item['token'] in os.environ.values()",
        lambda _: {"token": TOKEN},
    ),
    Attack(
        "the environment as the kernel has it",
        "return item['token'].encode() in open('/proc/self/environ', 'rb').read()",
        lambda _: {"token": TOKEN},
    ),
    Attack(
        "the environment in memory",
        """
        environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')
        n, found = 0, False
        while environ[n]:
            found |= item['token'].encode() in environ[n]
            n += 1
        return found
        """,
        lambda _: {"token": TOKEN},
    ),
    Attack(
        "open files",
        """
        for fd in range(3, 1024):
            try:
                if item['token'].encode() in os.pread(fd, 1000, 0):
                    return 1
            except OSError:
                pass
        return 0
        """,
        lambda _: {"token": TOKEN},
    ),
]


@pytest.mark.parametrize("attack", MAKING, ids=str)
def test_making_a_process(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("attack", RUNNING, ids=str)
def test_running_a_program(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("attack", INHERITED, ids=str)
def test_secrets_of_the_service(strike: Strike, attack: Attack) -> None:
    strike(attack)

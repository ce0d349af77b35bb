"""Taking more than a call's share: memory, disk, descriptors, threads, time, attention."""

import pytest

from tests.graders.attacks.arena import Attack
from tests.graders.attacks.conftest import Strike
from tests.graders.attacks.users import Bare, Sandboxed, code

#: The service of these tests gives a call 256 MB of memory and 16 MB on disk.
TAKING = [
    Attack("memory", "kept = [bytearray(1 << 20) for _ in range(400)]; return len(kept) == 400"),
    Attack("address space", "import mmap; return len(mmap.mmap(-1, 4 << 30)) > 0"),
    Attack(
        "memory that is shared",
        "import mmap; kept = [mmap.mmap(-1, 64 << 20) for _ in range(6)]; return len(kept) == 6",
    ),
    Attack(
        "memory after raising its limit",
        """
        import resource
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return len(bytearray(400 << 20)) > 0
        """,
    ),
    Attack(
        "one large file",
        "import tempfile; open(tempfile.mkstemp()[1], 'wb').write(bytes(40 << 20)); return 1",
    ),
    Attack(
        "one large file through memory",
        """
        import mmap, tempfile
        fd, path = tempfile.mkstemp()
        os.unlink(path)
        os.ftruncate(fd, 40 << 20)
        mmap.mmap(fd, 40 << 20)[-1] = 1
        return 1
        """,
    ),
    Attack(
        "many files",
        """
        import tempfile, time
        with tempfile.TemporaryDirectory() as folder:
            for n in range(5):
                open(f'{folder}/{n}', 'wb').write(os.urandom(1 << 20) * 10)
            time.sleep(0.5)
            return 1
        """,
    ),
    Attack(
        "files without a name",
        """
        import tempfile, time
        kept = [tempfile.TemporaryFile() for _ in range(5)]
        for file in kept:
            file.write(bytes(10 << 20))
            file.flush()
        time.sleep(0.5)
        return 1
        """,
    ),
    Attack(
        "a flood of empty files",
        """
        import tempfile, time
        with tempfile.TemporaryDirectory() as folder:
            for n in range(11_000):
                os.close(os.open(f'{folder}/{n}', os.O_CREAT))
            time.sleep(0.5)
            return 1
        """,
    ),
    Attack(
        "deep folders",
        """
        import shutil, tempfile, time
        top = tempfile.mkdtemp()
        os.chdir(top)
        for _ in range(100):
            os.mkdir('d')
            os.chdir('d')
        time.sleep(0.5)
        os.chdir('/')
        shutil.rmtree(top)
        return 1
        """,
    ),
    Attack(
        "a folder that nobody can look into",
        """
        import tempfile, time
        folder = tempfile.mkdtemp() + '/closed'
        os.mkdir(folder, 0o300)
        time.sleep(0.5)
        os.rmdir(folder)
        return 1
        """,
    ),
    Attack("descriptors", "return len([os.dup(0) for _ in range(600)]) == 600"),
    Attack(
        "threads",
        """
        import threading, time
        threading.stack_size(65_536)
        for _ in range(300):
            threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()
        return 1
        """,
    ),
    Attack(
        "signals that wait",
        """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [40])
        for _ in range(1000):
            libc.sigqueue(os.getpid(), 40, 0) and os.abort()
        return 1
        """,
    ),
    Attack(
        "the service's attention",
        """
        for _ in range(5000):
            try:
                os.getsid(1) and call('personality', 0xffffffff)
            except OSError:
                pass
        return 1
        """,
    ),
]

#: Hopeless, and seen at once.
CLOSING = "a closed channel"

#: What never ends by itself, in its own way.
HANGING = {
    "a loop": "while True: pass",
    "a loop in C": "return sum(iter(int, 1))",
    "sleep that catches everything": """
        import time
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass
        """,
    "stopping itself": "os.kill(os.getpid(), 19)",
    "ignoring every signal": """
        import signal
        for number in set(signal.Signals) - {9, 19}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
        """,
    "a flood of output": "while True: os.write(1, b'x' * 65536)",
    "a flood of errors": "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
    "a deadlock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a regular expression": "import re; return bool(re.match('(a+)+$', 'a' * 60 + 'b'))",
    "a number": "return 3 ** 3 ** 20",
    "an exception that cannot be described": """
        class Endless(Exception):
            def __str__(self):
                while True:
                    pass
        raise Endless
        """,
    "a number that cannot be converted": """
        class Endless(float):
            def __float__(self):
                while True:
                    pass
        return Endless(1)
        """,
    CLOSING: "os.close(3) if os.getcwd() != '/' else None\nwhile True: pass",
}


@pytest.mark.parametrize("attack", TAKING, ids=str)
def test_taking_too_much(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("way", HANGING)
def test_never_ending(bare: Bare, sandboxed: Sandboxed, way: str) -> None:
    source = code(HANGING[way])
    assert bare.run([source], {}, timeout_s=0.5) == "hung"
    found = sandboxed.run(source, {}, timeout_s=0.4)
    kind = "python_grader_runtime_error" if way == CLOSING else "python_grader_timeout"
    assert found["kind"] == kind, found
    assert found["others_unharmed"], found


@pytest.mark.parametrize("way", ["recursion", "a bad pointer", "abort"])
def test_crashing(bare: Bare, sandboxed: Sandboxed, way: str) -> None:
    source = code(
        {
            "recursion": "import sys; sys.setrecursionlimit(10**9)\ndef f(): repr(f2)\n"
            "class F2:\n    def __repr__(self): return repr(self)\nf2 = F2(); return len(repr(f2))",
            "a bad pointer": "ctypes.string_at(0)",
            "abort": "os.abort()",
        }[way]
    )
    assert str(bare.run([source], {})).startswith("died")
    found = sandboxed.run(source, {})
    assert found["kind"] == "python_grader_runtime_error"
    assert "crashed (SIG" in found["detail"]
    assert found["others_unharmed"], found

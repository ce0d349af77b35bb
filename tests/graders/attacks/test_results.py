"""The result: what can be written in its place, and what happens after it.

Code can choose the score of its own sample; it is the grader. What must hold: it makes no other
call's result, breaks nothing, and whatever is not a result is a failure.
"""

import json

import pytest

from graders.sandbox.jail import wire
from tests.graders.attacks.users import Bare, Sandboxed, code

#: What a naive runner takes for the result: the last thing that is printed as JSON.
NAIVE = "print('{\"score\": 1.0}')"

FORGING = {
    "printing it": f"{NAIVE}\nreturn 0.25",
    "printing as the last word": "import atexit; atexit.register(print, '1.0')\nreturn 0.25",
    "writing it to every descriptor": """
        for fd in (1, 2):
            os.write(fd, b'{"score": 1.0}')
        return 0.25
        """,
    "printing a great deal": "print('x' * 200_000)\nreturn 0.25",
    "printing what is no text": "os.write(1, bytes(range(256)))\nprint('\\ud800')\nreturn 0.25",
    "closing its output": "os.close(1); os.close(2)\nreturn 0.25",
    "replacing its output": "import sys; sys.stdout = sys.stderr = None\nreturn 0.25",
    "closing the stream": "import sys; sys.stdout.close(); sys.stderr.close()\nreturn 0.25",
    "closing its output too early": "print('x', end=''); os.close(1)\nreturn 0.25",
    "detaching the stream": """
        import io, sys
        sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')
        return 0.25
        """,
    "a stream of its own that fails": """
        import sys, types
        def fail():
            raise KeyboardInterrupt
        sys.stdout = types.SimpleNamespace(write=len, flush=fail)
        return 0.25
        """,
    "output that is full": """
        import sys
        os.set_blocking(1, False)
        sys.stdout.write('x' * 5000)
        try:
            while True:
                os.write(1, b'y' * 9000)
        except BlockingIOError:
            return 0.25
        """,
    "a thread that goes on": """
        import threading, time
        def later():
            while True:
                os.write(1, b'x')
        threading.Thread(target=later, daemon=True).start()
        return 0.25
        """,
    "a finaliser": """
        class Last:
            def __del__(self):
                os._exit(1)
        global kept
        kept = Last()
        return 0.25
        """,
    "a trace function": "import sys; sys.settrace(lambda *a: None)\nreturn 0.25",
    "an alarm": "import signal; signal.alarm(1); signal.alarm(0)\nreturn 0.25",
    "an interrupt afterwards": "import signal; signal.setitimer(0, 5)\nreturn 0.25",
}

UNUSUAL = {
    *("closing the stream", "a finaliser", "printing what is no text", "output that is full"),
    *("closing its output too early", "a stream of its own that fails"),
}

#: Codes that end without a result, and what the failure says.
ENDING = {
    "os._exit": ("os._exit(0)", "ended its process (code 0)"),
    "sys.exit": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "closing every descriptor": ("os.closerange(0, 256)\nreturn 1", "before grade returned"),
    "SIGKILL to itself": ("os.kill(os.getpid(), 9)", "was killed"),
    "SIGTERM to itself": ("os.kill(os.getpid(), 15)", "SIGTERM"),
    "an alarm": ("import signal, time; signal.alarm(1); time.sleep(9)", "SIGALRM"),
    "rubbish in the channel": ("os.write(3, b'x' * 100)\nreturn 1", "channel of its result"),
    "a flood in the channel": ("while True: os.write(3, bytes(65536))", "channel of its result"),
    "half a result": ("os.write(3, b'x' * 10); os._exit(0)", "ended its process (code 0)"),
    "a wrong length": (
        "import sys\n"
        "frame = sys._getframe(2)\n"
        "os.write(3, frame.f_locals['nonce'] + b'\\xff\\xff\\xff\\xff')\n"
        "return 1",
        "channel of its result",
    ),
    "an unknown kind": (
        "import sys\n"
        "frame = sys._getframe(2)\n"
        "os.write(3, frame.f_locals['nonce'] + b'\\0\\0\\0\\1Q')\n"
        "return 1",
        "channel of its result",
    ),
    "the harness undone": (
        "import sys\nsys.modules['jail.wire'].write_reply = None\nreturn 1",
        "ended its process (code 1)",
    ),
}

#: What `grade` may return that is no number, and what the failure calls it.
NO_NUMBERS = {
    "None": "None",
    "True": "True",
    "'0.5'": "str '0.5'",
    "[1.0]": "list",
    "1j": "complex",
    "b'1'": "bytes",
    "10 ** 400": "an int too large",
    "__import__('decimal').Decimal(1)": "Decimal",
    "type('F', (float,), {'__float__': lambda self: 1 / 0})(1)": "ZeroDivisionError",
    "type('F', (float,), {'__float__': lambda self: 'x'})(1)": "TypeError",
    "type('N', (), {'__float__': lambda self: 1.0})()": "N",
}

#: Exceptions whose type, traceback, line or message is a trap.
INDESCRIBABLE = [
    """
    class Meta(type):
        __name__ = property(lambda cls: 1 / 0)
    class E(Exception, metaclass=Meta):
        pass
    raise E
    """,
    "class E(Exception): __traceback__ = property(lambda self: 1 / 0)\nraise E",
    "raise SyntaxError('x', ('grader.py', 'no line', 1, 'x'))",
    "e = SyntaxError('x'); e.filename = 'grader.py'; e.lineno = -5; raise e",
    "e = SyntaxError('x'); e.filename = 'grader.py'; e.lineno = 10 ** 20; raise e",
]


@pytest.mark.parametrize("way", FORGING)
def test_a_result_is_what_grade_returned(bare: Bare, sandboxed: Sandboxed, way: str) -> None:
    source = code(FORGING[way])
    # Each is harmless to a runner that asks for the value; some end one that ends as usual.
    assert bare.run([source], {}) == 0.25 or way in UNUSUAL
    found = sandboxed.run(source, {})
    assert found["value"] == 0.25, found
    assert found["others_unharmed"], found
    assert len(found["output"]) < 70_000


@pytest.mark.parametrize("way", ENDING)
def test_no_result_is_a_failure(sandboxed: Sandboxed, way: str) -> None:
    body, words = ENDING[way]
    found = sandboxed.run(code(body), {})
    assert found["kind"] == "python_grader_runtime_error", found
    assert words in found["detail"], found
    assert found["others_unharmed"], found


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_a_failure(sandboxed: Sandboxed, value: str) -> None:
    found = sandboxed.run(code(f"return {value}"), {})
    assert found["kind"] == "python_grader_runtime_error", found
    assert NO_NUMBERS[value] in found["detail"], found


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_not_finite_is_a_failure(sandboxed: Sandboxed, value: str) -> None:
    found = sandboxed.run(code(f"return float('{value}')"), {})
    assert (found["kind"], found["value"]) == ("non_finite_reward", None)
    assert value in found["detail"]


def test_a_forged_result_is_only_its_own(sandboxed: Sandboxed) -> None:
    """The honest limit: code that knows where to look chooses its score, and nobody else's."""
    forged = code(
        """
        import struct, sys
        nonce = sys._getframe(2).f_locals['nonce']
        os.write(3, nonce + struct.pack('>I', 9) + b'V' + struct.pack('=d', 0.75))
        import time
        time.sleep(5)
        """
    )
    found = sandboxed.run(forged, {})
    assert found["value"] == 0.75
    assert found["others_unharmed"]


def test_a_forged_result_is_read_with_care(sandboxed: Sandboxed) -> None:
    for body in (b"V", b"V1", b"X", b"X\xff" * 30, b"N\xff\xfe", b"J" + b"[" * 60_000, b""):
        length = wire.LENGTH.pack(len(body))
        forged = code(
            f"import sys\nos.write(3, sys._getframe(2).f_locals['nonce'] + {length + body!r})\n"
            "return 1"
        )
        found = sandboxed.run(forged, {})
        assert found["kind"] == "python_grader_runtime_error", (body[:10], found)
        assert found["others_unharmed"]


def test_a_message_of_any_size_is_cut(sandboxed: Sandboxed) -> None:
    found = sandboxed.run(code("raise ValueError('x' * 10**6)"), {})
    assert "ValueError: xxx" in found["detail"]
    assert len(json.dumps(found["detail"])) < 3_000


@pytest.mark.parametrize("body", INDESCRIBABLE)
def test_an_exception_that_hinders_its_report(sandboxed: Sandboxed, body: str) -> None:
    found = sandboxed.run(code(body), {})
    assert found["kind"] == "python_grader_runtime_error"
    assert "cannot be described" in found["detail"], found
    assert found["others_unharmed"]


def test_what_a_stream_of_its_own_holds_back_is_kept(sandboxed: Sandboxed) -> None:
    body = (
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint('kept')\nreturn 1"
    )
    assert sandboxed.run(code(body), {})["output"] == "kept\n"


def test_an_exception_that_cannot_be_described(sandboxed: Sandboxed) -> None:
    body = "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E"
    found = sandboxed.run(code(body), {})
    assert "E: <its message cannot be read>" in found["detail"]
    assert "line" in found["detail"]

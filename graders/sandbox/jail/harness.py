"""Running the code of one grader on one sample, inside the locked process.

Nothing here is trusted by the service: the code can reach all of it. What it may gain by that is
another score for its own sample, which is its to choose anyway.
"""

import struct
import sys

from .wire import RAISED

#: What tracebacks call the user's source.
FILENAME = "grader.py"
#: Longest type and message of an exception, in characters.
MAX_TYPE, MAX_MESSAGE = 200, 2_000

_VALUE = struct.Struct("=d")


def run(source: str, sample: dict[str, object], item: dict[str, object]) -> bytes:
    """Execute the source and call its `grade`; returns the body of a reply, see `wire`."""
    module = type(sys)("grader")
    namespace = module.__dict__
    namespace["__file__"] = FILENAME
    sys.modules["grader"] = module
    try:
        exec(compile(source, FILENAME, "exec", dont_inherit=True), namespace)
        return number(namespace["grade"](sample, item))
    except BaseException as error:  # SystemExit too: whatever it is, it is reported
        return _reported(error)


def number(value: object) -> bytes:
    """The result as a number: int, float or a real number of numpy's, and nothing else."""
    kinds: tuple[type, ...] = (int, float)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kinds = (*kinds, numpy.integer, numpy.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return b"N" + _shown(value)
    try:
        return b"V" + _VALUE.pack(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return b"Nan int too large for a float"


def _reported(error: BaseException) -> bytes:
    try:
        return raised(error)
    except BaseException:  # type, traceback and line may be the code's own traps
        return b"X" + RAISED.pack(False, 0) + b"An exception that cannot be described"


def raised(error: BaseException) -> bytes:
    """Type, message and the line of the user's source in which the exception was raised."""
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == FILENAME:
            line = at.tb_lineno
        at = at.tb_next
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        line = error.lineno or 0
    name = type(error).__name__[:MAX_TYPE]
    text = f"{name}\0{_message(error)}".encode("utf-8", "backslashreplace")
    return b"X" + RAISED.pack(isinstance(error, MemoryError), line) + text


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MAX_MESSAGE]
    except BaseException:  # the exception's own code, which may raise anything
        return "<its message cannot be read>"


def _shown(value: object) -> bytes:
    if value is None or isinstance(value, bool):
        return repr(value).encode()
    name = type(value).__name__[:MAX_TYPE]
    text = f"{name} {value[:60]!r}" if type(value) is str else name
    return text.encode("utf-8", "backslashreplace")

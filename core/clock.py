"""Time: unix seconds for stored dates, and the database's own clock for leases."""

import threading
import time
from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def now() -> int:
    """Return the current unix time in whole seconds."""
    return int(time.time())


_seq_lock = threading.Lock()
_last_seq = 0


def next_seq() -> int:
    """Return unix nanoseconds, but always more than this process returned before.

    It orders rows whose times in seconds are equal, on every kind of database alike.
    """
    global _last_seq
    with _seq_lock:
        _last_seq = max(_last_seq + 1, time.time_ns())
        return _last_seq


class database_now(FunctionElement[float]):
    """The database server's unix time as an SQL expression, in seconds with a fraction.

    Leases compare times that different machines wrote; only one clock may decide.
    """

    type = Float()
    inherit_cache = True


@compiles(database_now, "sqlite")
def _sqlite_now(_element: database_now, _compiler: SQLCompiler, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(database_now, "postgresql")
def _postgres_now(_element: database_now, _compiler: SQLCompiler, **_options: Any) -> str:
    return "cast(extract(epoch from clock_timestamp()) as double precision)"

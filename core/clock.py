"""Time: unix seconds for stored dates, and the database's own clock for leases."""

import time
from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def now() -> int:
    """Return the current unix time in whole seconds."""
    return int(time.time())


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

"""What a person is told when a command fails."""

from sqlalchemy.exc import DBAPIError, ProgrammingError

from core.errors import NO_SPACE, RftError

_FULL = "The disk is full; free some space and run the command again."


def sentence(error: RftError | DBAPIError | OSError) -> str:
    """Return one sentence that names what failed and the way out."""
    if isinstance(error, RftError):
        return error.message
    if isinstance(error, DBAPIError):
        return _database(error)
    if error.errno in NO_SPACE:
        return _FULL
    return f"{error.filename or 'This machine'}: {error.strerror or error}."


def _database(error: DBAPIError) -> str:
    reason = next(iter(str(error.orig).splitlines()), type(error).__name__)
    if "disk is full" in reason:
        return _FULL
    # Postgres has an error of its own for it, SQLite only words.
    if isinstance(error, ProgrammingError) or reason.startswith("no such "):
        return f"The database lacks our tables ({reason}); run `rft-server migrate`."
    return f"The database does not answer ({reason}); start it or correct RFT_DATABASE_URL."

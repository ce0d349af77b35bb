"""Public identifiers: a prefix that says what it names, then 24 random letters and digits."""

import secrets
import string

ALPHABET = string.ascii_letters + string.digits


def random_text(length: int) -> str:
    """Return `length` random letters and digits from the system's secure source."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_id(prefix: str) -> str:
    """Return a fresh id, for example `new_id("ftjob-")`."""
    return prefix + random_text(24)

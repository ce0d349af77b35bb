"""Public identifiers: a prefix that says what it names, then 24 random letters and digits."""

import secrets
import string

ALPHABET = string.ascii_letters + string.digits


# Bytes from 248 on, the largest multiple of 62, are left out: then all characters are as likely.
_CHARACTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_LEFT_OUT = bytes(range(256 - 256 % len(ALPHABET), 256))


def random_text(length: int) -> str:
    """Return `length` random letters and digits from the system's secure source."""
    text = b""
    while len(text) < length:
        text += secrets.token_bytes(length + 8).translate(_CHARACTERS, _LEFT_OUT)
    return text[:length].decode()


def new_id(prefix: str) -> str:
    """Return a fresh id, for example `new_id("ftjob-")`."""
    return prefix + random_text(24)

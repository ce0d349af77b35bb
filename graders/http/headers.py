"""What can stand in the headers of a request."""


def is_sendable(value: str) -> bool:
    """Whether a header can have this value: printable ASCII without spaces around it."""
    return value.isascii() and value.isprintable() and value == value.strip()

"""Whom a secret belongs to, for tests without an API."""

from sqlalchemy.orm import Session

from core.keys import Principal, hash_of, look_up, principal_of


def authenticate(session: Session, secret: str) -> Principal:
    """Return the owner of a key; raises `InvalidKey` as the API does."""
    hashed = hash_of(secret)
    return principal_of(look_up(session.connection(), [hashed]).get(hashed))

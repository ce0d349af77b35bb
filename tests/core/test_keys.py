"""API keys: shown once, stored hashed, refused when unknown, revoked or expired."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.errors import InvalidKey, InvalidRequest
from core.keys import SCOPES, Principal, create_key, revoke_key
from core.models import ApiKey
from tests.core.principals import authenticate


def test_a_key_authenticates_its_project(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        key, secret = create_key(session, project_id, "mine", scopes=["read"])
    with factory() as session:
        assert authenticate(session, secret) == Principal(project_id, key.id, frozenset({"read"}))


def test_an_unknown_scope_makes_no_key(factory: sessionmaker[Session], project_id: str) -> None:
    known = "all, read, write, inference, keys, admin"
    refusal = pytest.raises(InvalidRequest, match=f"'nonsense' is not one of {known}")
    with refusal, factory.begin() as session:
        create_key(session, project_id, "mine", scopes=["read", "nonsense"])
    with factory.begin() as session:
        assert session.scalars(select(ApiKey)).all() == []
        assert create_key(session, project_id, "mine", scopes=list(SCOPES))[0].scopes == [*SCOPES]


def test_a_scope_named_twice_is_kept_once(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        key, _ = create_key(session, project_id, "mine", scopes=["write", "read", "write"])
        assert key.scopes == ["write", "read"]


def test_the_secret_is_not_stored(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        _, secret = create_key(session, project_id, "mine")
    assert secret.startswith("sk-rft-")
    with factory() as session:
        row = session.scalars(select(ApiKey)).one()
    assert secret not in str(vars(row))
    assert secret.startswith(row.prefix) and len(row.prefix) < 16


@pytest.mark.parametrize("secret", ["sk-rft-unknown", "", "My API Key", "\ud83d\x00"])
def test_an_unknown_key(factory: sessionmaker[Session], secret: str) -> None:
    with factory() as session, pytest.raises(InvalidKey, match="Incorrect API key") as refusal:
        authenticate(session, secret)
    assert (refusal.value.status, refusal.value.code) == (401, "invalid_api_key")


def test_a_revoked_key(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        key, secret = create_key(session, project_id, "mine")
        revoke_key(session, key)
    with factory() as session, pytest.raises(InvalidKey, match="revoked"):
        authenticate(session, secret)


def test_an_expired_key(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        _, old = create_key(session, project_id, "old", expires_at=now())
        _, fresh = create_key(session, project_id, "fresh", expires_at=now() + 1000)
    with factory() as session:
        assert authenticate(session, fresh).project_id == project_id
        with pytest.raises(InvalidKey, match="expired"):
            authenticate(session, old)


def test_scopes() -> None:
    narrow = Principal("proj_a", "key_a", frozenset({"read"}))
    assert narrow.may("read") and not narrow.may("write")
    assert Principal("proj_a", "key_a", frozenset({"all"})).may("write")

"""API keys: made once, stored hashed, never stronger than their maker."""

import asyncio
from collections.abc import Callable

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.models import ApiKey
from tests.api.examples import error_of
from tests.api.running import Api

KEYS = "/v1/organization/api_keys"


def as_key(secret: str) -> dict[str, str]:
    """The headers of a request with this key."""
    return {"authorization": f"Bearer {secret}"}


def test_a_key_works_until_it_is_revoked(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    made = http.post(KEYS, json={"name": "ci"}).json()
    secret = made.pop("value")
    assert secret.startswith("sk-rft-") and made["scopes"] == ["all"]
    with sessions() as session:
        row = session.get_one(ApiKey, made["id"])
        assert secret not in (row.hash, row.prefix)
    assert httpx.get(f"{api.url}/v1/models", headers=as_key(secret)).status_code == 200
    assert http.get(f"{KEYS}/{made['id']}").json() == made
    assert secret not in http.get(KEYS).text
    assert http.delete(f"{KEYS}/{made['id']}").json()["deleted"] is True
    error_of(httpx.get(f"{api.url}/v1/models", headers=as_key(secret)), 401)
    assert http.get(f"{KEYS}/{made['id']}").json()["revoked_at"] is not None


def test_keys_are_listed_in_pages(http: httpx.Client) -> None:
    made = {http.post(KEYS, json={"name": str(n)}).json()["id"] for n in range(3)}
    first = http.get(KEYS, params={"limit": 2}).json()
    rest = http.get(KEYS, params={"after": first["last_id"]}).json()
    listed = [key["id"] for key in [*first["data"], *rest["data"]]]
    assert len(listed) == 4 and made < set(listed)


def test_a_key_cannot_make_a_stronger_one(api: Api, new_key: Callable[..., str]) -> None:
    headers = as_key(new_key("keys", "read"))
    url = f"{api.url}{KEYS}"
    made = httpx.post(url, json={"name": "k", "scopes": ["read"]}, headers=headers)
    assert made.json()["scopes"] == ["read"]
    for scopes in (["write"], ["read", "all"]):
        response = httpx.post(url, json={"name": "k", "scopes": scopes}, headers=headers)
        assert error_of(response, 403)["code"] == "insufficient_scope"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "k", "scopes": []}, "scopes"),
        ({"name": "k", "scopes": ["root"]}, "scopes"),
        ({"name": "k", "expires_at": 1}, "expires_at"),
    ],
)
def test_refusals(http: httpx.Client, body: dict[str, object], param: str) -> None:
    assert error_of(http.post(KEYS, json=body), 400)["param"] == param


def test_an_unknown_scope_is_named_with_those_there_are(http: httpx.Client) -> None:
    error = error_of(http.post(KEYS, json={"name": "k", "scopes": ["root"]}), 400)
    assert "'root' is not one of all, read, write, inference, keys, admin." in error["message"]


def test_an_expiry_is_kept(http: httpx.Client) -> None:
    soon = now() + 60
    assert http.post(KEYS, json={"name": "k", "expires_at": soon}).json()["expires_at"] == soon


def test_scopes_hold_under_a_prefix_too(api: Api, new_key: Callable[..., str]) -> None:
    """As with `uvicorn --root-path`, where the path that the server sees begins with the prefix."""
    transport = httpx.ASGITransport(api.app, root_path="/rft")

    async def status(scope: str) -> int:
        async with httpx.AsyncClient(transport=transport, base_url="http://api.test/rft") as http:
            return (await http.get(KEYS, headers=as_key(new_key(scope)))).status_code

    assert [asyncio.run(status(scope)) for scope in ("keys", "read")] == [200, 403]

"""What every answer carries, what web pages of other origins may do, and when keys were used."""

from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from api.last_use import write_last_use
from core.clock import now
from core.errors import ConfigurationError
from core.models import ApiKey
from core.settings import Settings, read_settings
from tests.api.examples import error_of
from tests.api.running import Api, running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer

PAGE = "https://tools.example.com"
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,idempotency-key",
}


def test_a_part_that_is_away_says_when_to_try_again(http: httpx.Client, store: MemoryStore) -> None:
    store.down = True
    form = {"data": {"purpose": "batch"}, "files": {"file": ("f", b"x")}}
    answer = http.post("/v1/files", **form)  # type: ignore[arg-type]
    error_of(answer, 503)
    assert answer.headers["retry-after"] == "2"
    assert "x-should-retry" not in answer.headers


def test_no_other_origin_is_let_in_by_default(http: httpx.Client) -> None:
    answer = http.get("/v1/models", headers={"origin": PAGE})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert http.options("/v1/files", headers=PREFLIGHT).status_code == 405


def test_listed_origins_are_let_in(settings: Settings, new_key: Callable[..., str]) -> None:
    listed = settings.model_copy(update={"cors_origins": f"https://a.test, {PAGE}"})
    app = create_app(listed, store=MemoryStore(), serving_transport=ModelServer().transport)
    headers = {"authorization": f"Bearer {new_key()}"}
    with running(app) as url, httpx.Client(base_url=url) as http:
        preflight = http.options("/v1/files", headers=PREFLIGHT)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == PAGE
        assert "idempotency-key" in preflight.headers["access-control-allow-headers"]
        answer = http.get("/v1/models", headers={**headers, "origin": PAGE})
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        refused = http.get("/v1/models", headers={"origin": PAGE})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == PAGE
        other = http.get("/v1/models", headers={**headers, "origin": "https://evil.test"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("origins", ["tools.example.com", "https://a.test/", "ftp://a.test"])
def test_origins_that_are_none(origins: str) -> None:
    with pytest.raises(ConfigurationError, match="RFT_CORS_ORIGINS: it must be origins"):
        read_settings({"cors_origins": origins})


def test_the_last_use_of_a_key_is_written_down_later(
    api: Api, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    before = now()
    http.get("/v1/models")
    assert http.get("/v1/organization/api_keys").json()["data"][0]["last_used_at"] is None
    write_last_use(api.app.state.parts)
    shown = http.get("/v1/organization/api_keys").json()["data"][0]["last_used_at"]
    assert before <= shown <= now()
    with sessions.begin() as session:
        session.scalars(select(ApiKey)).one().last_used_at = now() + 100
    write_last_use(api.app.state.parts)
    with sessions() as session:
        assert session.scalars(select(ApiKey.last_used_at)).one() > now() + 50

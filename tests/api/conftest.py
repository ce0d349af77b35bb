"""The API on a real loopback port, with an object store and a model server in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from core.db import make_engine, session_factory
from core.keys import create_key, create_project
from core.settings import Settings
from tests.api.running import Api, ClientFor, running
from tests.contract.hook import settle
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer

MODELS = """
[[models]]
id = "base-1-2024"
path = "base-1"
aliases = ["base-1"]
context_tokens = 2048
owned_by = "lab"
created = 1700000000
"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test during which the API broke its contract; see `tests.contract.hook`."""
    yield
    settle()


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    """Settings of an API with one base model, a small upload limit and no dashboard."""
    models_file = tmp_path / "models.toml"
    models_file.write_text(MODELS)
    return Settings(
        database_url=sqlite_url,
        models_file=models_file,
        data_dir=tmp_path / "data",
        dashboard_dir=tmp_path / "no-dashboard",
        max_upload_bytes=100_000,
        serving_url="http://serving.test",
        serving_token="serving-token",
        broker_url="redis://127.0.0.1:1/0",
    )


@pytest.fixture
def sessions(settings: Settings) -> Iterator[sessionmaker[Session]]:
    """Sessions on the API's database."""
    engine = make_engine(settings.database_url)
    yield session_factory(engine)
    engine.dispose()


@pytest.fixture
def store() -> MemoryStore:
    """The API's object store."""
    return MemoryStore()


@pytest.fixture
def model_server() -> ModelServer:
    """The server behind /v1/chat/completions."""
    return ModelServer()


@pytest.fixture
def new_key(sessions: sessionmaker[Session]) -> Callable[..., str]:
    """Make a project with a key and return the key's secret."""

    def make(*scopes: str, project_id: str | None = None) -> str:
        with sessions.begin() as session:
            owner = project_id or create_project(session, "test").id
            return create_key(session, owner, "test", scopes=scopes or ("all",))[1]

    return make


@pytest.fixture
def api(
    settings: Settings, store: MemoryStore, model_server: ModelServer, new_key: Callable[..., str]
) -> Iterator[Api]:
    """The running API and a key of a project with every scope."""
    app = create_app(settings, store=store, serving_transport=model_server.transport)
    with running(app) as url:
        yield Api(app=app, url=url, key=new_key())


@pytest.fixture
def client_for(api: Api) -> Iterator[ClientFor]:
    """Make official clients for keys; they check every answer against OpenAI's types."""
    clients: list[openai.OpenAI] = []

    def make(key: str, *, strict: bool = True) -> openai.OpenAI:
        made = openai.OpenAI(
            api_key=key,
            base_url=f"{api.url}/v1",
            max_retries=0,
            timeout=30,
            _strict_response_validation=strict,
        )
        clients.append(made)
        return made

    yield make
    for made in clients:
        made.close()


@pytest.fixture
def client(api: Api, client_for: ClientFor) -> openai.OpenAI:
    """The official client of the default project."""
    return client_for(api.key)


@pytest.fixture
def http(api: Api) -> Iterator[httpx.Client]:
    """A plain HTTP client of the default project, for what the official one cannot send."""
    headers = {"authorization": f"Bearer {api.key}"}
    with httpx.Client(base_url=api.url, headers=headers, timeout=30) as plain:
        yield plain

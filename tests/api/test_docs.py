"""docs/api.md names every path, field and scope of the API."""

import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from api.schemas.chat import ChatRequest
from api.schemas.jobs import CreateJob
from core.keys import SCOPES
from tests.api.running import Api

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    """The documentation."""
    return (ROOT / "docs" / "api.md").read_text()


def test_every_path(api: Api, page: str) -> None:
    for route in api.app.routes:
        if isinstance(route, APIRoute):
            path = route.path.replace(":path", "")
            for method in route.methods:
                assert f"`{method} {path}`" in page


def test_every_field_and_scope(page: str) -> None:
    unsupported = {
        name for name, field in ChatRequest.model_fields.items() if field.annotation is type(None)
    }
    for name in [*CreateJob.model_fields, *SCOPES, *ChatRequest.model_fields]:
        if name not in unsupported:
            assert re.search(rf"`{name}\b", page), name

"""`/openapi.json` and `/docs`: open to everybody, and sufficient to themselves."""

import re
from pathlib import Path

import httpx
import pytest

from api.app import create_app
from core.settings import Settings
from tests.api.running import Api, running
from tests.fakes.memory_store import MemoryStore

DIST = Path(__file__).parents[2] / "dashboard" / "dist"


def test_the_document_is_served_without_a_key(api: Api) -> None:
    response = httpx.get(f"{api.url}/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json() == api.app.openapi()
    assert response.json()["openapi"].startswith("3.1")


def test_without_a_built_page_a_sentence_leads_to_the_document(api: Api) -> None:
    assert "openapi.json" in httpx.get(f"{api.url}/docs").text


@pytest.mark.skipif(not (DIST / "docs.html").exists(), reason="the dashboard was not built")
def test_the_page_needs_nothing_from_elsewhere(settings: Settings) -> None:
    built = settings.model_copy(update={"dashboard_dir": DIST})
    with running(create_app(built, store=MemoryStore())) as url:
        page = httpx.get(f"{url}/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
        assert "style=" not in page.text and "<script>" not in page.text
        parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(parts) >= 3
        for part in parts:
            assert part.startswith("./")
            assert httpx.get(f"{url}/{part}").status_code == 200

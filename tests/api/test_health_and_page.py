"""What needs no key: /health and the page at `/`."""

from pathlib import Path

import httpx

from api.app import create_app
from core.settings import Settings
from tests.api.examples import error_of
from tests.api.running import Api, running
from tests.fakes.memory_store import MemoryStore
from tests.fakes.model_server import ModelServer


def test_health_names_the_part_that_is_down(
    api: Api, store: MemoryStore, model_server: ModelServer
) -> None:
    def health() -> tuple[int, dict[str, object]]:
        response = httpx.get(f"{api.url}/health")
        return response.status_code, response.json()

    parts = {"database": "ok", "object_store": "ok", "serving": "ok"}
    tier = {"python_sandbox": "process"}
    assert health() == (200, {"status": "ok", "parts": parts} | tier)
    model_server.down = True
    parts["serving"] = "unreachable"
    assert health() == (200, {"status": "degraded", "parts": parts} | tier)
    store.down = True
    parts["object_store"] = "unreachable"
    assert health() == (503, {"status": "unavailable", "parts": parts} | tier)


def test_without_a_built_dashboard_the_page_says_so(api: Api) -> None:
    response = httpx.get(api.url)
    assert response.headers["content-type"].startswith("text/html")
    assert "was not built" in response.text and "RFT_DASHBOARD_DIR" in response.text
    assert "RFT_DASHBOARD_DIR" in httpx.get(f"{api.url}/docs").text


def test_the_dashboard_is_served_and_hides_nothing_of_the_api(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "dist" / "assets").mkdir(parents=True)
    (tmp_path / "dist" / "index.html").write_text("<h1>board</h1>")
    (tmp_path / "dist" / "favicon.svg").write_text("<svg/>")
    (tmp_path / "dist" / "assets" / "main.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    changed = settings.model_copy(update={"dashboard_dir": tmp_path / "dist"})
    app = create_app(changed, store=MemoryStore(), serving_transport=ModelServer().transport)
    with running(app) as url:
        page = httpx.get(f"{url}/")
        assert page.text == "<h1>board</h1>"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert httpx.get(f"{url}/favicon.svg").headers["content-type"] == "image/svg+xml"
        assert "javascript" in httpx.get(f"{url}/assets/main.js").headers["content-type"]
        for path in ("/nope", "/v1/nope", "/assets/nope.js", "/assets/%2e%2e/%2e%2e/secret.txt"):
            error_of(httpx.get(f"{url}{path}"), 404)
        error_of(httpx.post(f"{url}/nope"), 404)
        error_of(httpx.post(f"{url}/"), 405)

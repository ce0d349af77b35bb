"""Programs whose settings are wrong end with one sentence, whichever of them was started."""

import runpy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.app import create_app
from core.settings import get_settings
from workers.serving import app as serving

PROGRAMS: dict[str, Callable[[], Any]] = {
    "api": create_app,
    "serving": serving.create_app,
    "workers": lambda: runpy.run_module("workers.app"),
}


@pytest.fixture(autouse=True)
def fresh_settings() -> Iterator[None]:
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_setting_is_one_sentence(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("RFT_LEASE_TTL_S", "soon")
    with pytest.raises(SystemExit) as ended:
        PROGRAMS[program]()
    assert ended.value.code == "The settings are wrong: RFT_LEASE_TTL_S: must be a number."


@pytest.mark.parametrize("program", ["api", "serving"])
def test_so_is_a_list_of_models_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("RFT_SERVING_TOKEN", "between-us")
    monkeypatch.setenv("RFT_MODELS_FILE", "nowhere.toml")
    with pytest.raises(SystemExit) as ended:
        PROGRAMS[program]()
    assert "RFT_MODELS_FILE" in str(ended.value.code)

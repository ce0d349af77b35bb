"""Settings: read from the environment, refused with their names, and all documented."""

import re
from pathlib import Path

import pytest

from core.errors import ConfigurationError
from core.settings import Settings, get_settings, read_settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture
def fresh_settings() -> None:
    get_settings.cache_clear()


def rows() -> dict[str, tuple[str, str]]:
    """The table of the document: variable → default, meaning."""
    found = re.findall(r"^\| `(RFT_\w+)` \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {name: (default, meaning) for name, default, meaning in found}


def shown(default: object) -> str:
    return "–" if default in (None, "") else f"`{default}`"


def test_every_setting_is_documented_as_it_is() -> None:
    assert rows() == {
        f"RFT_{name.upper()}": (shown(field.default), field.description)
        for name, field in Settings.model_fields.items()
    }


def test_variables_and_empty_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFT_LEASE_TTL_S", "12.5")
    monkeypatch.setenv("RFT_S3_ENDPOINT_URL", "")
    settings = Settings()
    assert settings.lease_ttl_s == 12.5
    assert settings.s3_endpoint_url is None


@pytest.mark.usefixtures("fresh_settings")
def test_wrong_values_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFT_MAX_UPLOAD_BYTES", "much")
    monkeypatch.setenv("RFT_TRAINER_ENGINE", "tgi")
    with pytest.raises(ConfigurationError, match=r"RFT_MAX_UPLOAD_BYTES.*RFT_TRAINER_ENGINE"):
        get_settings()


@pytest.mark.usefixtures("fresh_settings")
def test_a_lease_outlives_two_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFT_LEASE_TTL_S", "9")
    with pytest.raises(ConfigurationError, match="RFT_LEASE_TTL_S must be at least twice"):
        get_settings()


def test_secrets_do_not_show() -> None:
    text = repr(Settings(s3_secret_access_key="hush", serving_token="hush"))
    assert "hush" not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database_url", "nonsense"),
        ("database_url", "mysql://rft:hidden@db/rft"),
        ("database_url", "postgresql://rft:hidden@db:port/rft"),
        ("broker_url", "nonsense"),
        ("broker_url", "amqp://rft:hidden@mq"),
        ("broker_url", "redis://:hidden@mq:port/0"),
        ("s3_endpoint_url", "seaweedfs:8333"),
        ("s3_endpoint_url", "http://"),
        ("serving_url", "localhost:8100"),
        ("serving_options", "--it's"),
    ],
)
def test_an_address_of_the_wrong_kind_is_named_without_its_password(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_settings({name: value})
    assert f"RFT_{name.upper()}: it must " in refusal.value.message
    assert "hidden" not in refusal.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database_url", "postgres://rft@[::1]/rft"),
        ("database_url", "postgresql+psycopg://rft@db:5432/rft"),
        ("broker_url", "rediss://:secret@mq:6380/1"),
        ("s3_endpoint_url", "https://s3.example.org"),
        ("serving_options", "--dtype 'float 16'"),
    ],
)
def test_addresses_of_the_right_kind(name: str, value: str) -> None:
    assert getattr(read_settings({name: value}), name) == value

"""The `rft-server` command without running servers: keys, migrate, doctor, and what goes wrong."""

import socket
from pathlib import Path

import pytest

from core.db import make_engine, session_factory
from tests.core.principals import authenticate
from tests.core.stack.commands import Command


def test_keys_from_making_to_revoking(
    command: Command, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
    secret = command("keys", "create", "ci", "--project", "team", "--days", "7").out.strip()
    engine = make_engine(sqlite_url)
    with session_factory(engine)() as session:
        key_id = authenticate(session, secret).key_id
    engine.dispose()
    listing = command("keys", "list").out
    assert key_id in listing
    assert "team  ci  valid until" in listing
    assert command("keys", "revoke", key_id).code == 0
    assert "revoked" in command("keys", "list").out


def test_an_unknown_key_is_named(
    command: Command, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
    result = command("keys", "revoke", "key_nothing")
    assert result.code == 1
    assert "no key 'key_nothing'" in result.err


def test_an_unknown_scope_makes_no_key(
    command: Command, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
    result = command("keys", "create", "--scope", "nonsense")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "The scope 'nonsense' is not one of all, read, write, inference, keys, admin.\n"
    )
    assert command("keys", "list").out == ""


@pytest.mark.parametrize("arguments", [("migrate",), ("keys", "list"), ("keys", "create")])
def test_a_folder_without_stack_is_named(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = command(*arguments, "--dir", str(tmp_path / "none"))
    assert result.code == 1
    assert result.err.startswith(f"There is no stack in {tmp_path / 'none'} yet;")
    assert result.err.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_a_database_that_does_not_answer_is_one_sentence(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        monkeypatch.setenv("RFT_DATABASE_URL", f"postgresql://rft:hidden@127.0.0.1:{port}/rft")
        result = command("keys", "list")
    assert result.code == 1
    assert result.err.startswith("The database does not answer")
    assert "RFT_DATABASE_URL" in result.err
    assert "hidden" not in result.err


def test_up_refuses_a_port_in_use(command: Command, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = command("up", "--dir", str(tmp_path), "--port", str(port))
    assert result.code == 1
    assert f"Port {port} on 127.0.0.1 is in use" in result.err


def test_up_refuses_servers_it_would_ignore(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_S3_ENDPOINT_URL", "http://minio:9000")
    result = command("up", "--dir", str(tmp_path / "stack"))
    assert result.code == 1
    assert result.err.startswith("RFT_S3_ENDPOINT_URL is set")
    assert not (tmp_path / "stack").exists()


def test_doctor_names_every_server_that_does_not_answer(
    command: Command, tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
        monkeypatch.setenv("RFT_BROKER_URL", f"redis://:hidden@{dead}/0")
        monkeypatch.setenv("RFT_S3_ENDPOINT_URL", f"http://{dead}")
        monkeypatch.setenv("RFT_S3_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("RFT_S3_SECRET_ACCESS_KEY", "b")
        result = command("doctor", "--dir", str(tmp_path))
    lines = {line.split()[1]: line for line in result.out.splitlines()}
    assert result.code == 1
    assert lines["database"].startswith("ok")
    assert lines["broker"].startswith("FAIL")
    assert f"redis://:***@{dead}" in lines["broker"]
    assert lines["store"].startswith("FAIL")
    assert dead in lines["store"]


def test_doctor_names_a_missing_model_list(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_MODELS_FILE", str(tmp_path / "absent.toml"))
    result = command("doctor", "--dir", str(tmp_path))
    assert result.code == 1
    assert str(tmp_path / "absent.toml") in result.out


def test_wrong_judges_are_one_sentence_before_anything_starts(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "judges.toml"
    file.write_text(
        '[[judges]]\nmodel = "a"\nbase_url = "https://j.example"\napi_key_env = "NO_SUCH_KEY"\n'
    )
    monkeypatch.setenv("RFT_JUDGES_FILE", str(file))
    said = f"Judge a in {file} takes its key from NO_SUCH_KEY, which is not set."
    result = command("up", "--dir", str(tmp_path / "stack"))
    assert (result.code, result.err) == (1, f"{said}\n")
    result = command("doctor", "--dir", str(tmp_path / "stack"))
    assert result.code == 1
    (line,) = [line for line in result.out.splitlines() if line.split()[1] == "judges"]
    assert line.startswith("FAIL") and said in line
    monkeypatch.setenv("NO_SUCH_KEY", "sk-1")
    assert "judges    1 of the judges file" in command("doctor", "--dir", str(tmp_path)).out

"""`rft-server export`: a stored model becomes an ordinary folder, or one sentence says why not."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from core import manifest
from core.clock import now
from core.db import make_engine, session_factory
from core.keys import create_project
from core.models import Checkpoint, Job
from core.store import ObjectStore
from tests.core.stack.commands import Command
from tests.fakes.memory_store import MemoryStore

NAME = "ft:lab/base:org-rft:support:a1b2c3d4"
FOLDER = "ft_lab_base_org-rft_support_a1b2c3d4"
PREFIX = "jobs/ftjob-1/final/model"
FILES = {"adapter_config.json": "{}", "adapter_model.safetensors": "weights", "sub/x.txt": "x"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """The store that the command finds."""
    memory = MemoryStore()
    monkeypatch.setattr(ObjectStore, "from_settings", lambda _settings: memory)
    return memory


@pytest.fixture
def sessions(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> sessionmaker[Session]:
    """Sessions on the database that the command finds."""
    monkeypatch.setenv("RFT_DATABASE_URL", sqlite_url)
    return session_factory(make_engine(sqlite_url))


def add_model(sessions: sessionmaker[Session], **columns: Any) -> None:
    with sessions.begin() as session:
        project_id = create_project(session, "p").id
        job = Job(
            project_id=project_id, model="lab/base", method={}, training_file="file-a", seed=1
        )
        session.add(job)
        session.flush()
        values = {
            "job_id": job.id,
            "project_id": project_id,
            "phase": "rl",
            "step": 8,
            "name": NAME,
            "object_prefix": PREFIX,
            "kind": "adapter",
            "metrics": {},
            "is_final": True,
            "has_state": False,
        }
        session.add(Checkpoint(**{**values, **columns}))


@pytest.fixture
def stored(store: MemoryStore, sessions: sessionmaker[Session], tmp_path: Path) -> MemoryStore:
    """A store with one adapter, which the database lists."""
    for name, text in FILES.items():
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    manifest.commit(store, PREFIX, tmp_path / "made")
    add_model(sessions)
    return store


@pytest.mark.usefixtures("stored")
def test_an_adapter_becomes_a_folder(command: Command, tmp_path: Path) -> None:
    result = command("export", NAME, "--out", str(tmp_path / "a" / "b"))
    folder = tmp_path / "a" / "b" / FOLDER
    assert (result.code, result.out) == (0, f"{folder}\n")
    written = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert written == FILES
    assert [path.name for path in folder.parent.iterdir()] == [FOLDER]


def test_an_unknown_model_writes_nothing(
    command: Command, tmp_path: Path, store: MemoryStore, sessions: sessionmaker[Session]
) -> None:
    add_model(sessions, deleted_at=now())
    for name in (NAME, "ft:other"):
        result = command("export", name, "--out", str(tmp_path / "out"))
        assert result.code == 1
        assert result.err == f"There is no model {name}; GET /v1/models lists them.\n"
    assert not (tmp_path / "out").exists()
    assert not store.objects


@pytest.mark.usefixtures("stored")
def test_a_folder_that_is_there_stays_as_it_is(command: Command, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "mine").touch()
    result = command("export", NAME, "--out", str(tmp_path))
    assert result.code == 1
    assert result.err.startswith(f"{tmp_path / FOLDER} is there already; move it away")
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["mine"]


def test_bytes_that_differ_from_the_manifest_are_no_model(
    command: Command, tmp_path: Path, stored: MemoryStore
) -> None:
    stored.put_bytes(f"{PREFIX}/adapter_model.safetensors", b"weightz")
    result = command("export", NAME, "--out", str(tmp_path / "out"))
    assert result.code == 1
    assert "adapter_model.safetensors has other content" in result.err
    assert not (tmp_path / "out" / FOLDER).exists()


def test_a_store_that_does_not_answer_is_one_sentence(
    command: Command, tmp_path: Path, stored: MemoryStore
) -> None:
    stored.down = True
    result = command("export", NAME, "--out", str(tmp_path / "out"))
    assert result.code == 1
    assert result.err.startswith("The object store at memory://store does not answer")
    assert result.err.count("\n") == 1


def list_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        f'[[models]]\nid = "{name}"\npath = "base"\n'
        'context_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    monkeypatch.setenv("RFT_MODELS_FILE", str(models))


@pytest.mark.usefixtures("stored")
def test_a_base_model_that_is_not_listed_any_more_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_base(tmp_path, monkeypatch, "another")
    result = command("export", NAME, "--merged", "--out", str(tmp_path / "out"))
    assert result.code == 1
    assert result.err.startswith("The base model lab/base is not listed in")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("stderr", "reason"), [("Traceback …\nOSError: no weights\n", "OSError: no weights"), ("", "9")]
)
def test_a_merge_that_fails_is_one_sentence(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stderr: str,
    reason: str,
) -> None:
    list_base(tmp_path, monkeypatch, "lab/base")

    def fail(arguments: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(arguments, 9, stderr=stderr)

    monkeypatch.setattr(subprocess, "run", fail)
    result = command("export", NAME, "--merged", "--out", str(tmp_path))
    assert result.code == 1
    assert result.err.startswith(f"The adapter is complete in {tmp_path / FOLDER}, but")
    assert reason in result.err
    assert result.err.count("\n") == 1
    assert (tmp_path / FOLDER / "adapter_config.json").exists()

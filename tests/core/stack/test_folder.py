"""What a stack keeps in its folder: lock, secrets, and the settings made of them."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from core.errors import ConfigurationError
from core.stack import credentials, environment
from core.stack.lock import FolderLock, read_holder
from core.stack.stack import prepare_folder, require_models


def test_a_locked_folder_names_the_holder(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.publish(url="http://127.0.0.1:8123")
    with pytest.raises(
        ConfigurationError, match=rf"process {os.getpid()}, at http://127.0.0.1:8123"
    ):
        FolderLock(tmp_path)
    lock.release()
    FolderLock(tmp_path).release()


def test_a_lock_without_url_says_that_the_stack_still_starts(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(ConfigurationError, match="still starting"):
        FolderLock(tmp_path)
    lock.release()


def test_the_lock_of_a_killed_stack_is_free(tmp_path: Path) -> None:
    code = (
        "import os, pathlib; from core.stack.lock import FolderLock;"
        f"FolderLock(pathlib.Path({str(tmp_path)!r})); os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=False)
    assert read_holder(tmp_path) == {}
    FolderLock(tmp_path).release()


def test_the_lock_waits_for_the_children_of_a_killed_stack(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(1.5)"], pass_fds=[lock.descriptor]
    )
    lock.release()  # clears the name, as if this process were gone; the child keeps the lock
    FolderLock(tmp_path).release()
    assert holder.poll() == 0


def test_credentials_are_made_once_and_private(tmp_path: Path) -> None:
    made = credentials.load(tmp_path)
    assert credentials.load(tmp_path) == made
    file = tmp_path / "secrets" / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert len({*json.loads(file.read_text()).values()}) == 4


def test_the_environment_of_a_stack_is_valid_settings(tmp_path: Path) -> None:
    ports = environment.choose_ports(tmp_path)
    settings = environment.settings_from(environment.embedded_environment(tmp_path, ports))
    assert settings.database_url == f"sqlite:///{tmp_path / 'rft.db'}"
    assert settings.broker_url.endswith(f":{ports['broker']}/0")
    assert settings.serving_url == f"http://127.0.0.1:{ports['serving']}"
    assert settings.models_file.is_absolute()


def test_outside_servers_are_not_silently_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFT_DATABASE_URL", "postgresql://db/rft")
    with pytest.raises(ConfigurationError, match="RFT_DATABASE_URL is set"):
        environment.refuse_outside_servers()


def test_no_stack_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RFT_DATABASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="There is no stack in"):
        environment.find_settings(tmp_path)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(100, 90, 200 << 20))
    with pytest.raises(ConfigurationError, match=r"Only 0\.2 GiB are free"):
        prepare_folder(tmp_path / "stack")


def test_a_missing_base_model_is_named(tmp_path: Path) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nid = "tiny"\npath = "nowhere"\n'
        'context_tokens = 8\nowned_by = "x"\ncreated = 1\n'
    )
    settings = environment.settings_from({"RFT_MODELS_FILE": str(models)})
    with pytest.raises(ConfigurationError, match="base model tiny is missing"):
        require_models(settings)

"""`rft-server up` on the real servers, as a person meets it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from core.process.guard import descendants
from core.stack.lock import FolderLock
from tests.processes import running

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SERVER = (sys.executable, "-m", "core.stack.cli")
ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("RFT_")},
    "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
}


class Up:
    """A running `rft-server up` and what it has said so far."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [*SERVER, "up", "--dir", str(folder)],
            cwd=ROOT,
            env=ENV,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.text = ""

    def read_until(self, mark: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line
            if mark in line:
                return self.text
        raise AssertionError(f"no {mark!r} in:\n{self.text}")

    def url(self) -> str:
        return self.find(r"API +(http://\S+)")

    def find(self, pattern: str) -> str:
        found = re.search(pattern, self.text)
        assert found, self.text
        return found.group(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack") / ".rft"


@pytest.fixture(scope="module")
def up(folder: Path) -> Iterator[Up]:
    first = Up(folder)
    first.read_until("Stop with Ctrl-C")
    yield first
    first.process.terminate()
    first.process.wait()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SERVER, *arguments], cwd=ROOT, env=ENV, capture_output=True, text=True, check=False
    )


def list_models(url: str, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"{url}/models", headers=headers).status_code


def test_the_printed_key_opens_the_printed_url(up: Up) -> None:
    key = up.find(r"API key \(shown only now\): (\S+)")
    assert list_models(up.url(), key) == 200
    assert list_models(up.url(), key + "x") == 401


def test_a_second_up_names_the_first(up: Up, folder: Path) -> None:
    second = run("up", "--dir", str(folder))
    assert second.returncode == 1
    assert f"process {up.process.pid}, at {up.url().removesuffix('/v1')}" in second.stderr
    assert second.stderr.count("\n") == 1


def test_doctor_finds_the_servers_of_a_running_stack(up: Up, folder: Path) -> None:
    report = run("doctor", "--dir", str(folder)).stdout
    assert re.search(r"ok +stack +running at " + up.url().removesuffix("/v1"), report)
    for part in ("database", "broker", "store"):
        assert re.search(rf"ok +{part} ", report), report
    assert "redis://:***@" in report  # and not the password


def test_keys_can_be_made_and_ended_while_it_runs(up: Up, folder: Path) -> None:
    key = run("keys", "create", "ci", "--dir", str(folder)).stdout.strip()
    assert list_models(up.url(), key) == 200
    listing = run("keys", "list", "--dir", str(folder)).stdout
    assert key not in listing
    key_id = re.search(r"(key_\w+)  \S+  default  ci  valid", listing)
    assert key_id, listing
    assert run("keys", "revoke", key_id.group(1), "--dir", str(folder)).returncode == 0
    assert list_models(up.url(), key) == 401


def test_after_kill_9_nothing_runs_and_the_next_start_has_the_data(up: Up, folder: Path) -> None:
    key, url = up.find(r"API key \(shown only now\): (\S+)"), up.url()
    children = descendants(up.process.pid)
    assert len(children) >= 14  # seven parts, each under its guard
    up.process.kill()
    up.process.wait()
    FolderLock(folder).release()  # waits for the last of them
    assert not running(children)

    again = Up(folder)
    again.read_until("Stop with Ctrl-C")
    assert "API key" not in again.text
    assert again.url() == url
    assert list_models(url, key) == 200
    children = descendants(again.process.pid)
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(timeout=60) == 0
    assert not running(children)


def test_ctrl_c_while_starting_leaves_nothing(tmp_path: Path) -> None:
    starting = Up(tmp_path / ".rft")
    starting.read_until("broker started")
    time.sleep(0.5)
    children = descendants(starting.process.pid)
    starting.process.send_signal(signal.SIGINT)
    assert starting.process.wait(timeout=60) == 0
    assert not running(children)

"""The examples of docs/uploads.md work as they stand there."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.api.examples import jsonl
from tests.api.running import Api

PAGE = (Path(__file__).parents[2] / "docs" / "uploads.md").read_text()


def blocks(language: str) -> list[str]:
    """The page's code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training file, which is the current one."""
    path = tmp_path / "work"
    path.mkdir()
    (path / "train.jsonl").write_bytes(jsonl())
    monkeypatch.chdir(path)
    return path


def test_shell(api: Api, folder: Path) -> None:
    variables = {"RFT": f"{api.url}/v1", "auth": f"Authorization: Bearer {api.key}"}
    script = "\n".join(["set -euo pipefail", *blocks("sh")])
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert '"status":"completed"' in done.stdout
    assert (folder / "whole.jsonl").read_bytes() == jsonl()
    assert (folder / "start.jsonl").read_bytes() == jsonl()[:100]
    assert (folder / "rest.jsonl").read_bytes() == jsonl()


@pytest.mark.usefixtures("folder")
def test_python(client: openai.OpenAI, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"client": client}
    first, *others = blocks("python")
    assert "OpenAI(" in first
    for block in others:
        exec(block, names)
    assert names["file"].status == "processed"
    assert names["done"].file is not None
    assert names["content"].content == jsonl()
    assert "processed None" in capsys.readouterr().out


def test_every_field_is_explained() -> None:
    for name in ("filename", "purpose", "mime_type", "bytes", "expires_after", "part_ids", "md5"):
        assert f"`{name}`" in PAGE or f'"{name}"' in PAGE

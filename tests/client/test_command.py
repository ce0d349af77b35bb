"""python -m rft.dataset"""

import json
from pathlib import Path

import pytest
from rft.dataset.__main__ import main

from tests.client.rows import USER, file_of, talk


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.jsonl"
    path.write_bytes(file_of(talk(USER), talk(USER)).getvalue())
    return str(path)


def test_problems_are_told_with_place_and_mend(
    tmp_path: Path, good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"messages":[]}\n')
    assert main([good, str(bad), "--kind", "rft"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{good}: warning: line 2: The row says the same as line 1.")
    assert "can be used as reinforcement: 2 of 2 rows are valid; 0 errors, 1 warnings" in said[1]
    assert said[2].startswith(f"{bad}: error: line 1 at /messages: No message is there.")
    assert "cannot be used" in said[3]


def test_reports_as_json_and_overlap(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([good, "--json", "--training", good]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["file"], report["ok"], report["overlap"]["exact"]) == (good, True, 2)
    assert main([good, "--training", good]) == 0
    assert "2 rows also stand in the training file" in capsys.readouterr().out


def test_a_file_that_is_not_there(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{good}.gone"]) == 2
    assert "good.jsonl.gone" in capsys.readouterr().err


def test_a_training_file_that_is_no_jsonl_is_named(
    tmp_path: Path, good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    for training in (str(broken), f"{good}.gone"):
        assert main([good, "--training", training]) == 2
        assert capsys.readouterr().err.startswith(f"{training}: ")

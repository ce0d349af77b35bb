"""docs/migrating-from-openai.md: its examples run, and its table is the list of differences."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from graders.spec import parse_grader
from tests.api.examples import jsonl
from tests.api.running import Api
from tests.contract.differences import DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "migrating-from-openai.md"
VALIDATION = [{"messages": [{"role": "user", "content": "50+1?"}], "answer": "51"}]


def blocks(language: str) -> list[str]:
    """The page's fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def table() -> str:
    """The table that the list of differences makes."""
    rows = [f"| {each.here} | {each.openai} | {each.reason} |" for each in DIFFERENCES]
    return "\n".join(["| here | OpenAI | reason |", "|---|---|---|", *rows])


def test_the_table_is_the_list_of_differences() -> None:
    assert table() in PAGE.read_text()
    assert len({each.here for each in DIFFERENCES}) == len(DIFFERENCES)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of the API's tests, with the model that the page names."""
    path = settings.models_file
    path.write_text(path.read_text().replace("base-1", "SmolLM2-135M-Instruct"))
    return settings


def test_the_examples_run(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.jsonl").write_bytes(jsonl())
    Path("valid.jsonl").write_bytes(jsonl(VALIDATION))
    code = "\n".join(blocks("python"))
    code = code.replace("http://127.0.0.1:8000", api.url).replace("sk-rft-…", api.key)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    shown = names["client"].fine_tuning.jobs.retrieve(names["job"].id)
    assert shown.status == "cancelled"
    names["client"].close()


def test_the_graders_are_graders_and_the_row_is_one() -> None:
    row, *graders = [json.loads(block) for block in blocks("json")]
    assert row["messages"][-1]["role"] == "user"
    assert [parse_grader(grader).type for grader in graders] == ["multi", "score_model"]

"""What README, CONTRIBUTING and docs point at is there: files, headings, targets, commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from core.stack.cli import app

ROOT = Path(__file__).parents[2]
DOCS = sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))
PAPERS = ("README.md", "CONTRIBUTING.md", *DOCS)
README = (ROOT / "README.md").read_text()


def links(text: str) -> list[str]:
    """The targets of the links that lead to this repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The names under which a page's headings can be linked."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def code(text: str) -> Iterator[str]:
    """The code of a page: fenced blocks, then what stands between backticks."""
    yield from re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def calls(text: str, program: str) -> list[list[str]]:
    """The words that follow the program in code, up to what is no name."""
    found = [match for part in code(text) for match in re.findall(rf"\b{program} ([^\n`]+)", part)]
    return [re.match(r"(?:[a-z][a-z-]*\s?)*", each)[0].split() for each in found]  # type: ignore[index]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_relative_link_leads_somewhere(paper: str) -> None:
    page = ROOT / paper
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text()), target


@pytest.mark.parametrize("paper", PAPERS)
def test_every_make_target_exists(paper: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for words in calls((ROOT / paper).read_text(), "make"):
        assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), words


@pytest.mark.parametrize("paper", PAPERS)
def test_every_command_of_the_server_exists(paper: str) -> None:
    for words in calls((ROOT / paper).read_text(), "rft-server"):
        command = typer.main.get_command(app)
        assert isinstance(command, TyperGroup)
        while isinstance(command, TyperGroup) and words:
            assert words[0] in command.commands, words
            command = command.commands[words.pop(0)]


def test_readme_shows_every_command_where_make_puts_it() -> None:
    assert len(calls(README, "make")) >= 3
    assert len(calls(README, "rft-server")) >= 4
    for part in code(README):
        assert not re.search(r"(?<!\.venv/bin/)rft-server [a-z]", part), part


def test_readme_says_what_its_examples_need() -> None:
    """Each `jq` in the examples stands below a sentence that asks for it."""
    section = README.split("## With curl")[1].split("\n## ")[0]
    prose, _, examples = section.partition("```")
    assert "jq" in examples
    assert "`jq`" in prose

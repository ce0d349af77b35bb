"""Rules of the house that no tool checks by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("api", "client", "core", "graders", "migrations", "trainer", "workers"),
    *("tests", "examples", "dashboard/src", "dashboard/tests", "requirements"),
)
#: A file is one idea that can be read in one sitting.
MAX_LINES = 400


def sources() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".ts", ".tsx", ".css") and "node_modules" not in path.parts
    ]


def test_no_file_is_longer_than_one_sitting() -> None:
    assert len(sources()) > 100
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources()
        if (lines := path.read_text().count("\n")) > MAX_LINES
    }
    assert not long


def test_folders_import_only_what_they_may() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_imports_of_the_light_parts_stay_light() -> None:
    """API and light worker run on machines without torch."""
    code = (
        "import sys, api.app, workers.app, core.stack.cli\n"
        "heavy = {'torch', 'transformers', 'peft', 'vllm'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "README.md"])
def test_the_root_papers_are_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 500


def test_contributing_fits_one_page() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 60

"""schemathesis reads our document and sends what it allows and what it forbids, for every path."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.running import Api

CONFIG = Path(__file__).with_name("schemathesis.toml")

#: Test cases for each operation and phase, and sequences of requests that use each other's answers.
EXAMPLES = 12


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_breaks(api: Api, tmp_path: Path) -> None:
    """No 5xx, and no answer that the document does not describe; the hook checks them too."""
    command = [
        *(Path(sys.executable).with_name("st"), f"--config-file={CONFIG}", "run"),
        *(f"{api.url}/openapi.json", "--checks=all", "--mode=all"),
        *("--seed=1", "--generation-deterministic", f"--max-examples={EXAMPLES}"),
        *("--no-shrink", "--no-color", "--warnings=off"),
        f"--header=Authorization: Bearer {api.key}",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-30_000:] + result.stderr

"""What the comparison of an export must come to, and what its process may end with."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import OutOfMemory, TrainerError, WeightsMismatch
from trainer.proof import TOLERANCE, prove

GOOD = {
    "max_difference": TOLERANCE,
    "max_difference_to_base": 0.5,
    "trainer_difference_to_base": 0.5,
}


def proved(monkeypatch: pytest.MonkeyPatch, *, code: int = 0, **measured: float) -> dict[str, Any]:
    """What comes of a comparison that measured this, or ended with this code."""

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], code, json.dumps(GOOD | measured), "the last words")

    monkeypatch.setattr("trainer.proof.subprocess.run", run)
    return prove(Path("export"), Path("base"), Path("rows"), "float32", quantization="none")


def test_what_agrees_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proved(monkeypatch) == {**GOOD, "tolerance": TOLERANCE, "differs_from_base": True}


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"max_difference": 0.5}, WeightsMismatch, "differs from the trained one by 0.5000"),
        ({"max_difference": math.nan}, WeightsMismatch, "differs from the trained one by nan"),
        ({"max_difference_to_base": 0.0}, WeightsMismatch, "answers as the base model does"),
        ({"code": 1}, WeightsMismatch, "could not be loaded .*: the last words"),
        ({"code": -9}, OutOfMemory, "was killed"),
    ],
)
def test_all_else_ends_the_job(
    monkeypatch: pytest.MonkeyPatch, changes: Any, error: type[TrainerError], said: str
) -> None:
    with pytest.raises(error, match=said):
        proved(monkeypatch, **changes)

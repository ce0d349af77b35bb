"""One stack folder for all tests here: what one test trained, the next one uses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.support import demo

#: The demo's job, made short.
SMALL: dict[str, Any] = {
    "warm_start": {"epochs": 2, "learning_rate": 1e-3, "batch_size": 4},
    "hyperparameters": {
        "lora_rank": 8,
        "learning_rate": 2e-4,
        "batch_size": 2,
        "group_size": 4,
        "max_steps": 5,
        "max_completion_tokens": 24,
        "eval_interval": 1,
        "eval_samples": 4,
    },
}


@pytest.fixture(scope="session")
def short_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The demo on a few rows of its data."""
    data = tmp_path_factory.mktemp("data")
    for name in ("train", "warm_start", "validation"):
        lines = (demo.DATA / f"{name}.jsonl").read_text().splitlines(keepends=True)
        (data / f"{name}.jsonl").write_text("".join(lines[:8]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "DATA", data)
        patch.setattr(demo, "METHOD", SMALL)
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack's folder, kept from one test to the next."""
    return tmp_path_factory.mktemp("stack") / "rft"

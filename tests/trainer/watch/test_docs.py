"""docs/guards.md and docs/results.md name every code and every metric that there is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from tests.trainer.reports import reports_of
from trainer.watch.finding import Stop

ROOT = Path(__file__).parents[3]
GUARDS = (ROOT / "docs" / "guards.md").read_text()
RESULTS = (ROOT / "docs" / "results.md").read_text()
#: Keys of OpenAI's events, which their guide describes.
OPENAIS = {
    *("step", "total_steps", "train_mean_reward", "full_valid_mean_reward"),
    *("full_valid_mean_parse_error", "reasoning_tokens_mean", "valid_reasoning_tokens_mean"),
    *("completion_tokens_mean", "mean_unresponsive_rewards", "grader_latency_mean_s"),
    *("scores", "errors", "usage", "timing", "model_graders_token_usage"),
}


def codes() -> set[str]:
    """The codes of all warnings in the trainer's source."""
    files = (ROOT / "trainer/watch").rglob("*.py")
    source = "\n".join(path.read_text() for path in files)
    return set(re.findall(r'Finding\(\s*"(\w+)"', source))


def test_every_code_is_listed_once() -> None:
    table = GUARDS.split("## Warnings")[1].split("### Signs")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(listed) == sorted(codes())
    for reason in get_args(get_type_hints(Stop)["reason"]):
        assert f"`{reason}`" in table


def test_every_metric_is_described(
    make_job: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.proof.prove", lambda *_, **__: {"differs_from_base": True})
    kinds = [{"algorithm": "ppo", "kl_coefficient": 0.1, "max_steps": 1}, {"max_steps": 1}]
    found: set[str] = set()
    for index, hyperparameters in enumerate(kinds):
        made = make_job(f"job{index}", warm_start=None, hyperparameters=hyperparameters)
        for report in reports_of(made):
            if report["type"] == "metrics":
                found |= report["data"].keys()
    section = RESULTS.split("### The metrics of a step")[1].split("\n## ")[0]
    described = set(re.findall(r"`(\w+)`", section))
    assert found - OPENAIS - described == set()

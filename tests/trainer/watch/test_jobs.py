"""Whole tiny jobs that end early, or nearly do."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.reports import reports_of
from trainer.errors import Diverged, EntropyCollapse, KlRunaway
from trainer.policy import Policy

MakeJob = Callable[..., Path]
Reports = list[dict[str, Any]]

MONITOR = {
    "type": "string_check",
    "name": "independent",
    "operation": "like",
    "input": "{{sample.output_text}}",
    "reference": "a",
}


@pytest.fixture(autouse=True)
def _no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process with a model of its own; other tests prove exports.
    monkeypatch.setattr("trainer.proof.prove", lambda *_, **__: {"differs_from_base": True})


#: The untrained model hardly ever ends by itself: what is cut must teach too.
LEARNS = {"mask_truncated": False}


def of(reports: Reports, kind: str) -> Reports:
    return [r for r in reports if r["type"] == kind]


def steps(reports: Reports) -> list[int]:
    return [r["step"] for r in of(reports, "metrics") if r["phase"] == "rl"]


def ends_well(reports: Reports, reason: str) -> None:
    """One sentence says why; what was learned is evaluated and exported."""
    [stopped] = of(reports, "stopped")
    assert stopped["reason"] == reason
    assert [r["stage"] for r in of(reports, "evaluation")][-1] == "final"
    last = of(reports, "checkpoint")[-1]
    assert last["final"] and last["step"] == steps(reports)[-1]
    assert isinstance(last["metrics"]["full_valid_mean_reward"], float)


def test_used_up_tokens_end_a_job_with_its_result(make_job: MakeJob) -> None:
    whole = make_job("whole", warm_start=None)
    tokens = [r["data"] for r in of(reports_of(whole), "metrics")]
    used = [data["sampled_tokens"] + data["trained_tokens"] for data in tokens]
    limit = sum(used[:2]) + max(used[:2]) - 1
    reports = reports_of(make_job(warm_start=None, limits={"max_tokens": limit}))
    assert steps(reports) == [1, 2]
    ends_well(reports, "max_tokens")
    warnings = of(reports, "warning")
    assert [w["data"]["budget"] for w in warnings if w.get("code") == "budget"]


def test_a_budget_that_is_gone_in_the_warm_start_ends_the_job_there(make_job: MakeJob) -> None:
    reports = reports_of(make_job(limits={"max_tokens": 12}))
    warm = [r for r in of(reports, "metrics") if r["phase"] == "warm_start"]
    assert 0 < sum(r["data"]["trained_tokens"] for r in warm) <= 12
    assert len(warm) < 5 and steps(reports) == []
    assert of(reports, "stopped")[0]["reason"] == "max_tokens"
    assert of(reports, "checkpoint")[-1]["final"]


def test_a_plateau_ends_a_job_with_its_result(make_job: MakeJob) -> None:
    job_dir = make_job(
        warm_start=None,
        hyperparameters={"eval_interval": 1, "max_steps": 9, "learning_rate": 1e-9},
        limits={"plateau_window": 3},
    )
    reports = reports_of(job_dir)
    assert steps(reports) == [1, 2]
    ends_well(reports, "plateau")
    assert of(reports, "stopped")[0]["data"]["steps"] == [0, 1, 2]


def test_a_guard_ends_a_job_and_leaves_the_checkpoint_before(make_job: MakeJob) -> None:
    job_dir = make_job(
        warm_start=None,
        hyperparameters={**LEARNS, "max_steps": 9, "eval_interval": 9},
        limits={"min_entropy": 99.0},
        checkpoint_interval=1,
    )
    with pytest.raises(EntropyCollapse):
        reports_of(job_dir)
    kept = sorted(path.name for path in (job_dir / "out/checkpoints").iterdir())
    assert kept == ["rl-step-0"]  # what came after was over the limit


def test_the_distance_is_measured_where_only_a_guard_needs_it(make_job: MakeJob) -> None:
    job_dir = make_job(
        warm_start=None,
        hyperparameters={**LEARNS, "max_steps": 9, "learning_rate": 0.05},
        limits={"max_kl": 1e-9},
    )
    with pytest.raises(KlRunaway, match="max_kl=1e-09"):
        reports_of(job_dir)


def test_used_up_memory_changes_no_result(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def curve(reports: Reports) -> list[tuple[float, float]]:
        data = [r["data"] for r in of(reports, "metrics")]
        return [(each["loss"], each["grad_norm"]) for each in data]

    usual = reports_of(make_job("usual", warm_start=None, hyperparameters=LEARNS))
    backward, calls = torch.Tensor.backward, []

    def fails_once(self: torch.Tensor, *args: Any, **options: Any) -> None:
        backward(self, *args, **options)
        calls.append(self)
        if len(calls) == 1:  # the gradients of the first try are there by now
            raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.Tensor, "backward", fails_once)
    disturbed = reports_of(make_job("disturbed", warm_start=None, hyperparameters=LEARNS))
    assert "micro_batch_halved" in [w.get("code") for w in of(disturbed, "warning")]
    assert len(calls) > 1
    assert curve(disturbed) == [pytest.approx(pair, rel=1e-4) for pair in curve(usual)]


def test_an_update_that_is_not_finite_leaves_the_steps_before(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, calls = Policy.update, []

    def fails_at_the_second(self: Policy, learning_rate: float) -> float:
        calls.append(learning_rate)
        if len(calls) == 2:
            raise Diverged("The gradient is not finite.")
        return update(self, learning_rate)

    monkeypatch.setattr(Policy, "update", fails_at_the_second)
    job_dir = make_job(warm_start=None, hyperparameters=LEARNS, checkpoint_interval=9)
    with pytest.raises(Diverged):
        reports_of(job_dir)
    kept = sorted(path.name for path in (job_dir / "out/checkpoints").iterdir())
    assert kept == ["rl-step-0", "rl-step-1"]


def test_weights_that_have_no_finite_loss_are_not_kept(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, calls = Policy.update, []

    def spoils_the_second_step(self: Policy, learning_rate: float) -> float:
        calls.append(learning_rate)
        norm = update(self, learning_rate)
        if len(calls) == 3:  # its first update of two
            with torch.no_grad():
                next(iter(self.masters.values())).fill_(math.nan)
            self.refresh()
        return norm

    monkeypatch.setattr(Policy, "update", spoils_the_second_step)
    twice = {**LEARNS, "rollout_epochs": 2}
    job_dir = make_job(warm_start=None, hyperparameters=twice, checkpoint_interval=9)
    with pytest.raises(Diverged, match="loss is not finite"):
        reports_of(job_dir)
    kept = sorted(path.name for path in (job_dir / "out/checkpoints").iterdir())
    assert kept == ["rl-step-0"]


def test_the_monitor_watches_validation_only(make_job: MakeJob) -> None:
    job_dir = make_job(warm_start=None, monitor_grader=MONITOR)
    reports = reports_of(job_dir)
    with_validation = {
        r["step"]: r["data"]["monitor"]
        for r in of(reports, "metrics")
        if r["data"]["full_valid_mean_reward"] is not None
    }
    assert sorted(with_validation) == [2, 4]
    for figures in with_validation.values():
        assert 0.0 <= figures["valid_reward_mean"] <= 1.0
        assert (figures["failures"], figures["abstentions"]) == (0, 0)
    stages = {r["stage"]: r["summary"]["monitor"] for r in of(reports, "evaluation")}
    assert stages.keys() == {"base", "final"} and stages["final"] == with_validation[4]
    assert all("monitor" not in r["data"] for r in of(reports, "metrics") if r["step"] in (1, 3))


def test_every_step_tells_what_it_used(make_job: MakeJob) -> None:
    reports = reports_of(make_job(warm_start=None, hyperparameters={"max_steps": 1}))
    [metrics] = of(reports, "metrics")
    data = metrics["data"]
    lengths = data["completion_tokens_quantiles"]
    assert lengths["min"] <= lengths["p50"] <= lengths["max"] <= 12
    assert data["sampled_tokens"] == pytest.approx(16 * data["completion_tokens_mean"])
    assert data["throughput"]["sampling_tokens_per_s"] > 0
    assert data["memory"]["rss_peak_bytes"] > 10**8
    assert data["train_reward_std"] > 0
    json.dumps(data, allow_nan=False)

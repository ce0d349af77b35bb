"""Whole jobs on the tiny model, in process and as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.trainer.reports import reports_of
from trainer.errors import GraderFailures, InvalidData

MakeJob = Callable[..., Path]


def _of(reports: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [r for r in reports if r["type"] == kind]


def _curve(reports: list[dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    """Everything about a step that learning decides; seconds are left out."""
    return {
        r["step"]: (
            r["data"]["train_mean_reward"],
            r["data"]["full_valid_mean_reward"],
            r["data"]["loss"],
            r["data"]["grad_norm"],
            r["data"]["mismatch_mean"],
        )
        for r in _of(reports, "metrics")
        if r["phase"] == "rl"
    }


def test_a_job_reports_every_phase_and_leaves_its_files(make_job: MakeJob) -> None:
    job_dir = make_job()
    reports = reports_of(job_dir)
    assert [r["phase"] for r in _of(reports, "phase")] == [
        "loading",
        "base_evaluation",
        "warm_start",
        "warm_start_evaluation",
        "rl",
        "final_evaluation",
        "export",
    ]
    assert sorted(_curve(reports)) == [1, 2, 3, 4]
    assert [(r["phase"], r["step"]) for r in _of(reports, "checkpoint")] == [
        ("warm_start", 2),
        ("warm_start", 4),
        ("rl", 0),
        ("rl", 2),
        ("export", 4),
    ]
    final = _of(reports, "checkpoint")[-1]
    assert final["final"] and not final["state"] and final["kind"] == "full"
    proof = final["proof"]
    assert (proof["prompts"], proof["engine"]["name"]) == (8, "transformers")
    assert proof["max_difference"] < proof["tolerance"] == 1e-3
    assert proof["differs_from_base"] and proof["mean_difference_to_base"] > 1e-3
    assert "proof" not in final["metrics"]
    for report in reports:
        if "path" in report:
            assert (job_dir / report["path"]).exists()


def test_samples_of_a_step_can_be_read_back(make_job: MakeJob) -> None:
    job_dir = make_job()
    reports = reports_of(job_dir)
    first = _of(reports, "rollouts")[0]
    with zstandard.open(job_dir / first["path"], "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == first["count"] == 16
    data = _of(reports, "metrics")[-4:][0]["data"]
    scores = [r["outcome"]["value"] for r in rows]
    assert sum(scores) / len(scores) == pytest.approx(data["train_mean_reward"])
    assert all(len(r["token_ids"]) == len(r["logprobs"]) for r in rows)
    for start in range(0, 16, 4):  # advantages of a group cancel out
        assert sum(r["advantage"] for r in rows[start : start + 4]) == pytest.approx(0, abs=1e-6)


def test_the_evaluation_table_keeps_held_out_rows_apart(make_job: MakeJob) -> None:
    job_dir = make_job()
    reports_of(job_dir)
    table = json.loads((job_dir / "out/reports/evaluation.json").read_text())
    assert [s["stage"] for s in table["stages"]] == ["base", "warm_start", "final"]
    for stage in table["stages"]:
        assert stage["selection"]["rows"] == stage["held_out"]["rows"] == 2
        assert [r["row"] for r in stage["held_out_rows"]] == [2, 3]
    assert [(g["from"], g["to"]) for g in table["gains"]] == [
        ("base", "warm_start"),
        ("warm_start", "final"),
    ]


def test_the_warm_start_teaches_and_rl_raises_the_reward(make_job: MakeJob) -> None:
    warm = {"epochs": 30, "learning_rate": 1e-2, "batch_size": 4, "reference_field": None}
    job_dir = make_job(
        data={
            "train": "data/train.jsonl",
            "validation": None,
            "warm_start": "data/warm_start.jsonl",
        },
        warm_start=warm,
        hyperparameters={
            "max_steps": 20,
            "batch_size": 8,
            "group_size": 8,
            "learning_rate": 3e-3,
        },
    )
    reports = reports_of(job_dir)
    losses = [r["data"]["train_loss"] for r in _of(reports, "metrics") if "train_loss" in r["data"]]
    assert losses[-1] < 0.3 * losses[0]
    rewards = [values[0] for _, values in sorted(_curve(reports).items())]
    assert sum(rewards[-3:]) > sum(rewards[:3]) + 1.0


def test_a_job_without_validation_or_warm_start_runs(make_job: MakeJob) -> None:
    data = {"train": "data/train.jsonl", "validation": None, "warm_start": None}
    reports = reports_of(make_job(data=data, warm_start=None))
    assert _of(reports, "evaluation") == []
    assert sorted(_curve(reports)) == [1, 2, 3, 4]


def test_a_target_may_come_from_a_field_of_the_rows(make_job: MakeJob) -> None:
    warm = {"epochs": 2, "learning_rate": 1e-2, "batch_size": 4, "reference_field": "second"}
    data = {"train": "data/train.jsonl", "validation": None, "warm_start": None}
    reports = reports_of(make_job(data=data, warm_start=warm))
    steps = [r for r in _of(reports, "metrics") if r["phase"] == "warm_start"]
    assert len(steps) == 4


def test_failures_of_the_grader_end_the_job_with_examples(make_job: MakeJob) -> None:
    grader = {
        "type": "string_check",
        "name": "json",
        "operation": "eq",
        "input": "{{sample.output_json.x}}",
        "reference": "1",
    }
    with pytest.raises(GraderFailures, match=r"completions could not be graded") as end:
        reports_of(make_job(grader=grader))
    assert end.value.examples[0]["outcome"]["kind"] == "sample_parse_error"


def test_a_row_beyond_the_context_is_named(make_job: MakeJob) -> None:
    model = json.loads((make_job("other") / "spec.json").read_text())["model"]
    with pytest.raises(InvalidData, match=r"Row 1 of train.jsonl has \d+ prompt tokens"):
        reports_of(make_job(model={**model, "context_tokens": 20}))


class TrainerProcess:
    """``python -m trainer`` with its two pipes, as a supervisor starts it."""

    def __init__(self, job_dir: Path) -> None:
        report_read, report_write = os.pipe()
        control_read, self.control = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainer", str(job_dir)],
            pass_fds=(report_write, control_read),
            env={
                **os.environ,
                "RFT_REPORT_FD": str(report_write),
                "RFT_CONTROL_FD": str(control_read),
            },
        )
        os.close(report_write)
        os.close(control_read)
        self.reports = os.fdopen(report_read)

    def read_until(self, kind: str, **fields: Any) -> dict[str, Any]:
        for line in self.reports:
            report: dict[str, Any] = json.loads(line)
            if report["type"] == kind and all(report.get(k) == v for k, v in fields.items()):
                return report
        raise AssertionError(f"the trainer ended before it reported {kind} {fields}")


@pytest.mark.slow
def test_a_process_pauses_on_request_and_says_so(make_job: MakeJob) -> None:
    trainer = TrainerProcess(make_job(hyperparameters={"max_steps": 500, "eval_interval": 500}))
    trainer.read_until("metrics", phase="rl")
    os.write(trainer.control, b'{"type": "pause"}\n')
    checkpoint = trainer.read_until("checkpoint", state=True)
    ended = trainer.read_until("ended")
    assert ended["reason"] == "paused"
    assert ended["message"] == f"Paused after step {checkpoint['step']}."
    assert trainer.process.wait(timeout=60) == 3


@pytest.mark.slow
def test_a_process_does_not_outlive_its_supervisor(make_job: MakeJob) -> None:
    trainer = TrainerProcess(make_job(hyperparameters={"max_steps": 500, "eval_interval": 500}))
    trainer.read_until("metrics", phase="rl")
    os.close(trainer.control)
    assert trainer.process.wait(timeout=60) == 1


@pytest.mark.slow
def test_killed_anywhere_the_resumed_curve_is_the_same(make_job: MakeJob) -> None:
    straight = _curve(reports_of(make_job("straight")))
    killed = make_job("killed")
    trainer = TrainerProcess(killed)
    trainer.read_until("checkpoint", phase="rl", step=2)
    trainer.process.send_signal(signal.SIGKILL)
    trainer.process.wait()
    again = make_job("again")
    (killed / "out/checkpoints/rl-step-2").rename(again / "resume")
    resumed = _curve(reports_of(again))
    assert sorted(resumed) == [3, 4]
    assert resumed == {step: straight[step] for step in (3, 4)}

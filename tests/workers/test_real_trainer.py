"""The real trainer under the supervisor: a tiny random model, killed once on its way."""

import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import select

from api.schemas.dry_runs import DryRunObject
from core import manifest
from core.ids import new_id
from core.models import DRY_RUN, File, Job, Metric
from tests.workers.lab import Lab, Running, processes_of, wait_for
from workers.validation import validate_waiting

pytestmark = pytest.mark.slow

#: Metrics that two runs of one job need not share.
MEASURED_ANEW = frozenset({"timing", "throughput", "memory", "grader_latency_mean_s", "graders"})


def digits_grader() -> dict[str, object]:
    """Rewards every digit: a model that was shown numbers gets some, not always the same."""
    digits = "0123456789"
    check = {"type": "string_check", "input": "{{sample.output_text}}", "operation": "ilike"}
    return {
        "type": "multi",
        "name": "digits",
        "graders": {f"d{c}": {**check, "name": f"d{c}", "reference": c} for c in digits},
        "calculate_output": " + ".join(f"d{c}" for c in digits),
    }


def queued(lab: Lab) -> str:
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        job = session.get_one(Job, job_id)
        block = job.method["reinforcement"]
        values = block["hyperparameters"] | {
            "max_steps": 4,
            "max_completion_tokens": 12,
            "group_size": 4,
            "learning_rate": 0.001,
            # The frozen embeddings of a random model leave an adapter nothing to learn with.
            "lora_rank": 0,
            "eval_interval": 2,
            "eval_samples": 4,
        }
        # Long enough that the model learns to end its answer: cut-off ones teach nothing.
        warm_start = block["warm_start"] | {"epochs": 8, "batch_size": 4, "learning_rate": 0.01}
        block = block | {
            "grader": digits_grader(),
            "hyperparameters": values,
            "warm_start": warm_start,
        }
        job.method = {**job.method, "reinforcement": block}
    return job_id


def numbers(lab: Lab, job_id: str) -> list[dict[str, object]]:
    """All that the steps measured, but for time and memory."""
    with lab.context.sessions() as session:
        steps = session.scalars(
            select(Metric.data)
            .where(Metric.job_id == job_id, Metric.phase.in_(("warm_start", "rl")))
            .order_by(Metric.phase.desc(), Metric.step)
        )
        return [{k: v for k, v in data.items() if k not in MEASURED_ANEW} for data in steps]


def kill_trainer_after_checkpoint(lab: Lab, job_id: str, running: Running) -> None:
    wait_for(lambda: any(c.step == 2 for c in lab.checkpoints(job_id)), timeout_s=120)
    for pid in processes_of(f"-m trainer {lab.context.settings.data_dir.resolve()}"):
        os.kill(pid, signal.SIGKILL)
    running.join()


def test_real_trainer_killed_half_way_ends_with_the_curve_of_one_that_was_not(
    real_lab: Lab, tmp_path: Path
) -> None:
    undisturbed = queued(real_lab)
    real_lab.run()
    assert real_lab.job(undisturbed).status == "succeeded", real_lab.messages(undisturbed)
    disturbed = queued(real_lab)
    kill_trainer_after_checkpoint(real_lab, disturbed, real_lab.start())
    real_lab.run_all()
    assert real_lab.job(disturbed).status == "succeeded", real_lab.messages(disturbed)
    assert real_lab.job(disturbed).attempts == 2
    curve = numbers(real_lab, undisturbed)
    assert numbers(real_lab, disturbed) == curve
    assert len(curve) == 24 + 4
    # The comparison means something: rewards differ, and weights moved after the resumed step, too.
    assert len({step["train_mean_reward"] for step in curve[-4:]}) > 2
    assert any(step["grad_norm"] > 0 for step in curve[-2:])
    final = real_lab.checkpoints(disturbed)[-1]
    manifest.fetch(real_lab.context.store, final.object_prefix, tmp_path / "final")
    assert (tmp_path / "final" / "model.safetensors").exists()


def test_real_dry_run_leaves_a_report_that_the_api_shows(real_lab: Lab) -> None:
    block = {"grader": digits_grader(), "hyperparameters": {"max_completion_tokens": 12}}
    plan = {"rows": 4, "samples_per_row": 3}
    method = {"type": "reinforcement", "reinforcement": block}
    dry_run = real_lab.new_job(
        method, id=new_id("dryrun-"), kind=DRY_RUN, plan=plan, validation_file=None
    )
    validate_waiting(real_lab.context, owner="lab")
    real_lab.run()
    job = real_lab.job(dry_run)
    assert job.status == "succeeded", real_lab.messages(dry_run)
    shown = DryRunObject.of(job)
    assert shown.report is not None and shown.progress is not None
    assert (shown.report.completions, shown.progress.done, shown.progress.total) == (12, 12, 12)
    with real_lab.context.sessions() as session:
        samples = session.get_one(File, shown.samples_file)
    lines = real_lab.context.store.get_bytes(samples.object_key).splitlines()
    assert len(lines) == 12


def test_real_look_before_the_first_step_is_an_event(real_lab: Lab) -> None:
    job_id = queued(real_lab)
    real_lab.run()
    events = real_lab.events(job_id)
    (look,) = [e for e in events if e.data and isinstance(e.data.get("groups"), dict)]
    assert (look.phase, look.step) == ("rl", 1)
    assert "groups" in look.message

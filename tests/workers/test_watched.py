"""What the trainer's watch says becomes events, and what it ends becomes a state with a way out."""

import json

import pytest

from tests.workers.lab import GRADER, Lab
from workers.supervisor.jobdir import make_spec


def test_a_warning_carries_its_code_and_its_evidence(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("after_step:3", "warn")
    lab.run()
    [event] = [e for e in lab.events(job_id) if e.level == "warn"]
    assert event.message == "50% of max_tokens is used: 5 of 10."
    assert event.data == {"code": "budget", "share": 0.5}
    assert (event.phase, event.step) == ("rl", 3)
    assert lab.job(job_id).status == "succeeded"


def test_an_early_stop_is_a_success_with_a_model(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("after_step:4", "plateau")
    lab.run()
    job = lab.job(job_id)
    assert (job.status, job.step, job.error) == ("succeeded", 4, None)
    assert job.fine_tuned_model is not None
    [event] = [e for e in lab.events(job_id) if e.data and e.data.get("code") == "plateau"]
    assert (event.level, event.data["steps"]) == ("info", [0, 2, 4])
    assert lab.checkpoints(job_id)[-1].is_final


@pytest.mark.parametrize("reason", ["diverged", "entropy_collapse", "kl_runaway"])
def test_a_guard_fails_the_job_and_names_the_model_that_is_left(lab: Lab, reason: str) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:6", reason)
    lab.run()
    job = lab.job(job_id)
    [kept] = [c for c in lab.checkpoints(job_id) if c.step == 4]
    assert (job.status, job.error["code"]) == ("failed", reason)
    assert job.error["message"] == (
        f"Scripted: {reason}. The checkpoint of step 4 is kept and can be used as the model "
        f"{kept.name}."
    )


def test_seconds_of_earlier_attempts_count_against_the_budget(lab: Lab) -> None:
    job = lab.job(lab.queued_job())
    job.gpu_seconds = 4321
    assert make_spec(lab.context, job).limits.seconds_before == 4321


def test_the_monitor_has_a_process_of_its_own(lab: Lab) -> None:
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        job = session.get_one(type(lab.job(job_id)), job_id)
        method = json.loads(json.dumps(job.method))
        method["reinforcement"]["monitor_grader"] = {**GRADER, "name": "independent"}
        job.method = method
    lab.run()
    assert lab.job(job_id).status == "succeeded"
    [run] = lab.remembered("runs")
    sockets = [run["environment"][f"RFT_{name}_SOCKET"] for name in ("GRADER", "MONITOR")]
    assert len(set(sockets)) == 2

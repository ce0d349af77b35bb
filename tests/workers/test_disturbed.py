"""Trainers that die, hang, and say nonsense: the job ends as if undisturbed, or says why not."""

import pytest

from tests.workers.lab import Lab

#: Every place at which a trainer may be gone the next moment.
POINTS = [
    "loading",
    "base_evaluation",
    "warm_start:1",
    "warm_start_evaluation",
    "checkpoint:rl:0",
    "after_checkpoint:rl:0",
    "step:1",
    "after_step:3",
    "checkpoint:rl:4",
    "after_checkpoint:rl:4",
    "final_evaluation",
    "export",
    "checkpoint:export:6",
    "after_checkpoint:export:6",
]


@pytest.mark.parametrize("point", POINTS)
def test_killed_trainer_is_followed_by_one_that_ends_with_the_same_curve(
    lab: Lab, point: str
) -> None:
    job_id = lab.queued_job()
    lab.mishap(point, "kill")
    lab.run()
    assert lab.job(job_id).status == "queued"
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert len(lab.remembered("runs")) == 2


def test_second_run_goes_on_from_the_last_checkpoint_under_a_higher_fence(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("after_step:5", "kill")
    lab.run()
    fence = lab.job(job_id).fence
    lab.run()
    assert [run["step"] for run in lab.remembered("runs")] == [0, 4]
    assert lab.job(job_id).fence > fence
    assert "Going on from the checkpoint of step 4" in lab.messages(job_id)


def test_three_failures_without_a_checkpoint_in_between_fail_the_job(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:1", "kill", times=9)
    lab.run_all()
    job = lab.job(job_id)
    # The first attempt brought the checkpoint of step 0: the count starts after it.
    assert (job.status, len(lab.remembered("runs"))) == ("failed", 3)
    assert job.error["code"] == "killed"
    assert job.error["message"].startswith("Training stopped 3 times without reaching another")
    assert lab.messages(job_id, level="error") == [job.error["message"]]


def test_failures_with_progress_in_between_do_not_add_up(lab: Lab) -> None:
    job_id = lab.queued_job()
    points = ("step:1", "step:3", "step:5", "export")
    lab.script(mishaps={point: {"do": "kill"} for point in points})
    lab.run_all()
    lab.assert_as_if_undisturbed(job_id)
    assert len(lab.remembered("runs")) == 5


def test_job_whose_workers_died_three_times_fails_at_the_next_claim(lab: Lab) -> None:
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        session.get_one(type(lab.job(job_id)), job_id).failed_attempts = 3
    lab.run()
    assert lab.job(job_id).status == "failed"
    assert lab.job(job_id).error["code"] == "worker_lost"
    assert lab.remembered("runs") == []


@pytest.mark.parametrize(
    ("reason", "code", "param"),
    [
        ("diverged", "diverged", None),
        ("kl_runaway", "kl_runaway", None),
        ("unusable_model", "model_not_trainable", "model"),
        ("invalid_data", "invalid_training_file", "training_file"),
    ],
)
def test_reasons_that_would_come_again_fail_at_once(
    lab: Lab, reason: str, code: str, param: str | None
) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:2", reason)
    lab.run()
    job = lab.job(job_id)
    assert job.status == "failed"
    assert job.error == {"code": code, "message": f"Scripted: {reason}.", "param": param}


@pytest.mark.parametrize("reason", ["no_disk", "grader_failures"])
def test_reasons_outside_the_job_pause_it_with_an_error_event(lab: Lab, reason: str) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:4", reason)
    lab.run()
    assert lab.job(job_id).status == "paused"
    assert lab.job(job_id).error is None
    assert lab.messages(job_id, level="error") == [f"Scripted: {reason}."]
    lab.move(job_id, "queued")
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert [run["step"] for run in lab.remembered("runs")] == [0, 2]


@pytest.mark.parametrize("reason", ["out_of_memory", "weights_mismatch", "error"])
def test_other_reasons_are_tried_again(lab: Lab, reason: str) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:4", reason)
    lab.run()
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert f"Scripted: {reason}. The job will go on from its last checkpoint." in lab.messages(
        job_id, level="warn"
    )


def test_silent_trainer_is_killed_and_followed(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.context.settings.stall_timeout_s = 1.0
    lab.mishap("step:3", "hang")
    lab.run()
    assert lab.job(job_id).status == "queued"
    assert any("silent for 1 seconds" in m for m in lab.messages(job_id, level="warn"))
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_trainer_that_says_nonsense_is_killed_and_followed(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:3", "garble")
    lab.run()
    assert any("is no report" in m for m in lab.messages(job_id, level="warn"))
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_damaged_checkpoint_is_left_out(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:3", "kill")
    lab.run()
    (last,) = [c for c in lab.checkpoints(job_id) if c.has_state]
    lab.context.store.put_bytes(f"{last.object_prefix}/adapter_config.json", b"other")
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert [run["step"] for run in lab.remembered("runs")] == [0, 0]
    assert any("does not match its manifest" in m for m in lab.messages(job_id, level="warn"))


def test_base_model_whose_files_are_gone_pauses_the_job_until_they_are_back(lab: Lab) -> None:
    job_id = lab.queued_job()
    config = lab.context.registry.require("base").path / "config.json"
    config.unlink()
    lab.run()
    assert lab.job(job_id).status == "paused"
    (told,) = lab.messages(job_id, level="error")
    assert f"The base model base is missing at {config.parent}" in told
    assert lab.remembered("runs") == []
    config.write_text("{}")
    lab.move(job_id, "queued")
    lab.run()
    lab.assert_as_if_undisturbed(job_id)

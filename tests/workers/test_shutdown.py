"""A worker that is told to end gives its job back in time, wherever the trainer is."""

import pytest

from core.settings import Settings
from core.stack.programs import program_specs
from tests.workers.lab import Lab, Running, processes_of, wait_for
from tests.workers.stores import SlowStore
from workers.supervisor.attempt import Conduct


def told_to_end_at(lab: Lab, point: str) -> Running:
    """A worker that is told to end while its trainer does not listen."""
    running = lab.start()
    wait_for(lambda: lab.reached(point))
    running.stopping.set()
    return running


@pytest.mark.parametrize(
    "point", ["loading", "base_evaluation", "warm_start:1", "warm_start_evaluation", "export"]
)
def test_trainer_that_does_not_come_to_a_step_is_killed_in_time(lab: Lab, point: str) -> None:
    job_id = lab.queued_job()
    lab.context.settings.stop_grace_s = 0.5
    lab.mishap(point, "hang")
    told_to_end_at(lab, point).join()
    job = lab.job(job_id)
    assert (job.status, job.failed_attempts, job.lease_owner) == ("queued", 0, None)
    assert {"type": "pause"} in lab.remembered("control")  # it was asked first
    assert not processes_of(job_id)
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_any_number_of_shutdowns_does_not_fail_the_job(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.context.settings.stop_grace_s = 0.1
    for _ in range(4):
        (lab.memory / "mishap-warm_start_1").unlink(missing_ok=True)
        lab.mishap("warm_start:1", "hang")
        told_to_end_at(lab, "warm_start:1").join()
        assert lab.job(job_id).status == "queued"
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_pause_of_the_user_is_kept_when_the_trainer_is_killed(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.context.settings.stop_grace_s = 0.1
    lab.mishap("warm_start:1", "hang")
    running = lab.start()
    wait_for(lambda: lab.reached("warm_start:1"))
    lab.move(job_id, "pausing")
    running.stopping.set()
    running.join()
    assert (lab.job(job_id).status, lab.job(job_id).failed_attempts) == ("paused", 0)


@pytest.mark.parametrize("fragment", ["/checkpoints/", "models/"])
def test_upload_that_does_not_end_does_not_keep_the_job(lab: Lab, fragment: str) -> None:
    job_id = lab.queued_job()
    lab.context.settings.stop_grace_s = 0.1
    store = SlowStore(lab.context.store, fragment)
    running = lab.start(store=store)
    assert store.begun.wait(60)
    running.stopping.set()
    running.join()
    job = lab.job(job_id)
    assert (job.status, job.failed_attempts, job.lease_owner) == ("queued", 0, None)
    store.go.set()
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_stack_waits_longer_than_a_worker_needs_to_give_its_job_back(tmp_path) -> None:
    settings = Settings(stop_grace_s=7.0)
    specs = program_specs(tmp_path, settings, host="127.0.0.1", port=1, env={})
    (worker,) = [spec for spec in specs if spec.name == "worker-train"]
    # Ending the grader may take 5 s by itself.
    assert worker.grace_s > settings.stop_grace_s + Conduct().upload_grace_s + 5

"""Pause, cancel, shutdown, takeover: what others want of a running job."""

from core.lease import claim, reap_expired
from core.models import Job
from tests.workers.lab import Lab, Running, processes_of, wait_for


def held_at(lab: Lab, point: str) -> tuple[str, Running]:
    """A job whose trainer waits at a point, and its supervisor in a thread."""
    job_id = lab.queued_job()
    lab.mishap(point, "wait")
    running = lab.start()
    wait_for(lambda: lab.reached(point))
    return job_id, running


def asked_to_pause(lab: Lab) -> bool:
    return {"type": "pause"} in lab.remembered("control")


def test_pause_ends_the_step_stores_it_and_resume_goes_on(lab: Lab) -> None:
    job_id, running = held_at(lab, "step:3")
    lab.move(job_id, "pausing")
    wait_for(lambda: asked_to_pause(lab))
    lab.let_go()
    running.join()
    assert lab.job(job_id).status == "paused"
    assert [c.step for c in lab.checkpoints(job_id) if c.has_state] == [3]
    lab.move(job_id, "queued")
    lab.run()
    assert [run["step"] for run in lab.remembered("runs")] == [0, 3]
    assert lab.job(job_id).status == "succeeded"


def test_trainer_killed_while_pausing_leaves_a_paused_job(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.script(mishaps={"step:3": {"do": "wait"}, "after_step:3": {"do": "kill"}})
    running = lab.start()
    wait_for(lambda: lab.reached("step:3"))
    lab.move(job_id, "pausing")
    lab.let_go()
    running.join()
    assert lab.job(job_id).status == "paused"
    lab.move(job_id, "queued")
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_job_that_finishes_while_pausing_succeeds(lab: Lab) -> None:
    job_id, running = held_at(lab, "export")
    lab.move(job_id, "pausing")
    wait_for(lambda: asked_to_pause(lab))
    lab.let_go()
    running.join()
    lab.assert_as_if_undisturbed(job_id)


def test_cancel_kills_the_trainer_and_what_it_started(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:3", "wait", children=1)
    running = lab.start()
    wait_for(lambda: lab.reached("step:3"))
    lab.move(job_id, "cancelled")
    running.join()
    assert not processes_of(job_id)
    assert not set(processes_of("sleep")) & {int(pid) for pid in children(lab)}
    before = lab.messages(job_id)
    assert before[-1] == "Fine-tuning job cancelled"
    assert lab.job(job_id).status == "cancelled"
    assert lab.run() is None


def children(lab: Lab) -> list[str]:
    return (lab.memory / "children").read_text().split()


def test_worker_that_shuts_down_gives_the_job_back_after_the_step(lab: Lab) -> None:
    job_id, running = held_at(lab, "step:3")
    running.stopping.set()
    wait_for(lambda: asked_to_pause(lab))
    lab.let_go()
    running.join()
    job = lab.job(job_id)
    assert (job.status, job.failed_attempts, job.lease_owner) == ("queued", 0, None)
    lab.run()
    assert [run["step"] for run in lab.remembered("runs")] == [0, 3]
    assert lab.job(job_id).status == "succeeded"


def test_pause_wins_over_shutdown(lab: Lab) -> None:
    job_id, running = held_at(lab, "step:3")
    lab.move(job_id, "pausing")
    running.stopping.set()
    wait_for(lambda: asked_to_pause(lab))
    lab.let_go()
    running.join()
    assert lab.job(job_id).status == "paused"


def expire(lab: Lab, job_id: str) -> None:
    """Let the lease be over, as after a long silence, and give the job to the next."""
    with lab.context.sessions.begin() as session:
        session.get_one(Job, job_id).lease_expires_at = 1.0
        session.flush()
        # In one transaction: a heartbeat in between would extend the lease again.
        assert reap_expired(session) == [job_id]


def test_stale_holder_writes_nothing_and_its_trainer_dies(lab: Lab) -> None:
    job_id, running = held_at(lab, "step:3")
    (trainer,) = [run["pid"] for run in lab.remembered("runs")]
    expire(lab, job_id)
    with lab.context.sessions.begin() as session:
        successor = claim(session, owner="successor", ttl_s=60)
    before = (lab.messages(job_id), lab.curve(job_id), lab.rollouts(job_id))
    lab.let_go()
    running.join()
    assert trainer not in processes_of(job_id)
    after = (lab.messages(job_id), lab.curve(job_id), lab.rollouts(job_id))
    assert before[:2] == after[:2] and len(before[2]) == len(after[2])
    job = lab.job(job_id)
    assert (job.status, job.fence, job.lease_owner) == ("running", successor.fence, "successor")


def test_expired_lease_is_taken_over_from_the_last_checkpoint(lab: Lab) -> None:
    job_id, running = held_at(lab, "step:4")
    fence = lab.job(job_id).fence
    wait_for(lambda: any(c.step == 2 and c.has_state for c in lab.checkpoints(job_id)))
    expire(lab, job_id)
    assert lab.run() == job_id
    running.join()
    lab.assert_as_if_undisturbed(job_id)
    assert lab.job(job_id).fence > fence + 1
    assert [run["step"] for run in lab.remembered("runs")] == [0, 2]

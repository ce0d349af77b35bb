"""``kill -9`` of the worker: nothing of it runs on, another goes on with the same curve."""

from pathlib import Path

import pytest

from core.lease import reap_expired
from core.settings import Settings
from tests.workers.lab import Lab, processes_of, wait_for
from tests.workers.processes import program

WORKER = str(Path(__file__).with_name("worker_program.py"))


def reap(lab: Lab) -> list[str]:
    with lab.context.sessions.begin() as session:
        return reap_expired(session)


@pytest.mark.parametrize(
    ("point", "goes_on_at"),
    [
        ("base_evaluation", 0),
        ("warm_start:2", 0),
        ("step:3", 2),
        ("checkpoint:rl:4", 2),
        ("export", 4),
    ],
)
def test_killed_worker_leaves_no_process_and_the_next_ends_the_job(
    lab: Lab, worker_settings: Settings, tmp_path: Path, point: str, goes_on_at: int
) -> None:
    job_id = lab.queued_job()
    lab.mishap(point, "wait")
    with program(
        WORKER, str(lab.memory), settings=worker_settings, log=tmp_path / "worker.log"
    ) as worker:
        wait_for(lambda: lab.reached(point))
        if goes_on_at:
            wait_for(lambda: any(c.step == goes_on_at for c in lab.checkpoints(job_id)))
        # The trainer and the grader; both name the job's folder.
        assert len(processes_of(job_id)) == 2
        worker.kill()
        worker.wait()
        wait_for(lambda: not processes_of(job_id), timeout_s=10)
    assert lab.job(job_id).status == "running"
    wait_for(lambda: reap(lab) == [job_id])
    assert lab.job(job_id).status == "queued"
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert [run["step"] for run in lab.remembered("runs")] == [0, goes_on_at]

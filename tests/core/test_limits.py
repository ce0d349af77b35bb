"""Limits: what is used of them, refusals, and what happens to running jobs; on both databases."""

import threading
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.errors import InvalidRequest, QuotaExceeded
from core.eval_runs import cancel
from core.gpu_quota import stop_over_quota
from core.limits import (
    Limits,
    check_gpu_seconds,
    check_new_job,
    check_stored_bytes,
    gpu_seconds,
    usage,
)
from core.models import (
    DRY_RUN,
    Checkpoint,
    Eval,
    EvalRun,
    Event,
    File,
    Job,
    Project,
    Upload,
    UploadPart,
)
from core.projects import archive_project, change_limits, create_project, find_project
from core.states import transition
from tests.core.jobs import MakeJob


def test_a_project_changes_the_servers_limits() -> None:
    server = Limits(live_jobs=3, gpu_seconds=100)
    assert server.changed(None) == server
    changed = server.changed({"live_jobs": 0, "gpu_seconds": "unlimited", "stored_bytes": 5})
    assert changed == Limits(live_jobs=0, gpu_seconds=None, stored_bytes=5)


def test_limits_are_set_and_taken_back(factory: sessionmaker[Session], project_id: str) -> None:
    with factory.begin() as session:
        project = session.get_one(Project, project_id)
        change_limits(project, {"live_jobs": 3, "gpu_seconds": "unlimited"})
        change_limits(project, {"live_jobs": None})
    with factory() as session:
        assert session.get_one(Project, project_id).limits == {"gpu_seconds": "unlimited"}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"live_job": 1}, "did you mean 'live_jobs'"),
        ({"zzz": 1}, "limits are requests_per_minute, "),
        ({"live_jobs": -1}, "whole number from 0"),
        ({"live_jobs": "many"}, "whole number from 0"),
        ({"live_jobs": 2**62 + 1}, "whole number from 0"),
    ]
    for change, words in changes:
        with factory() as session, pytest.raises(InvalidRequest, match=words):
            change_limits(session.get_one(Project, project_id), change)


def test_live_jobs(factory: sessionmaker[Session], project_id: str, make_job: MakeJob) -> None:
    for status in ("validating_files", "queued", "running", "pausing", "paused"):
        make_job(status=status)
    for status in ("succeeded", "failed", "cancelled"):
        make_job(status=status)
    with factory.begin() as session:
        assert usage(session, project_id).live_jobs == 5
        check_new_job(session, project_id, Limits(live_jobs=6))
        with pytest.raises(QuotaExceeded, match="may have 5 unfinished"):
            check_new_job(session, project_id, Limits(live_jobs=5))
        check_new_job(session, create_project(session, "other").id, Limits(live_jobs=1))


def test_a_job_and_the_end_of_its_project_wait_for_each_other(
    factory: sessionmaker[Session], project_id: str
) -> None:
    refused: list[str | None] = []

    def archive() -> None:
        try:
            with factory.begin() as session:
                archive_project(session, session.get_one(Project, project_id))
        except InvalidRequest as error:
            refused.append(error.code)

    archiving = threading.Thread(target=archive)
    with factory.begin() as session:
        check_new_job(session, project_id, Limits())
        archiving.start()
        archiving.join(0.2)
        assert archiving.is_alive()
        job = Job(project_id=project_id, model="m", method={}, training_file="file-a", seed=1)
        session.add(job)
    archiving.join()
    assert refused == ["project_in_use"]
    with factory.begin() as session:
        session.get_one(Job, job.id).status = "cancelled"
        archive_project(session, session.get_one(Project, project_id))
        with pytest.raises(InvalidRequest, match="is archived and starts no jobs"):
            check_new_job(session, project_id, Limits())


def test_gpu_seconds_count_every_time_a_job_was_held(
    factory: sessionmaker[Session],
    project_id: str,
    make_job: MakeJob,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = now()
    job_id = make_job(status="queued")

    def at(seconds: int, to: str) -> None:
        monkeypatch.setattr("core.states.now", lambda: time + seconds)
        with factory.begin() as session:
            transition(session, job_id, to)

    at(0, "running")
    at(10, "pausing")
    at(15, "paused")
    at(100, "queued")
    at(200, "running")
    monkeypatch.setattr("core.limits.now", lambda: time + 230)
    with factory() as session:
        assert session.get_one(Job, job_id).gpu_seconds == 15
        assert gpu_seconds(session, project_id) == 15 + 30
        with pytest.raises(QuotaExceeded, match="45 of its 45 GPU seconds"):
            check_gpu_seconds(session, project_id, Limits(gpu_seconds=45))
        check_gpu_seconds(session, project_id, Limits(gpu_seconds=46))
    at(240, "succeeded")
    with factory() as session:
        job = session.get_one(Job, job_id)
        assert (job.gpu_seconds, job.running_since) == (55, None)
        assert gpu_seconds(session, project_id) == 55


def test_stored_bytes(factory: sessionmaker[Session], project_id: str, make_job: MakeJob) -> None:
    job_id = make_job(status="succeeded")
    file: dict[str, Any] = {
        "project_id": project_id,
        "filename": "f",
        "purpose": "batch",
        "sha256": "0",
        "object_key": "k",
    }
    upload: dict[str, Any] = {
        "project_id": project_id,
        "filename": "f",
        "purpose": "batch",
        "mime_type": "t",
        "bytes": 10_000,
        "expires_at": now(),
    }
    checkpoint: dict[str, Any] = {
        "job_id": job_id,
        "project_id": project_id,
        "phase": "rl",
        "object_prefix": "p",
        "kind": "full",
        "metrics": {},
        "is_final": False,
        "has_state": False,
    }
    with factory.begin() as session:
        pending, done = Upload(**upload), Upload(**upload, status="completed")
        session.add_all([pending, done, File(**file, bytes=1), File(**file, bytes=7, deleted_at=1)])
        session.flush()
        for owner, size in ((pending, 20), (pending, 300), (done, 7)):
            part = UploadPart(upload_id=owner.id, bytes=size, sha256="0", object_key="k")
            session.add(part)
        session.add(Checkpoint(**checkpoint, step=1, name="a", bytes=4000))
        session.add(Checkpoint(**checkpoint, step=2, name="b", bytes=7, deleted_at=1))
        session.add(Checkpoint(**checkpoint, step=3, name="c"))
    with factory.begin() as session:
        assert usage(session, project_id).stored_bytes == 4321
        check_stored_bytes(session, project_id, Limits(stored_bytes=4330), 9)
        with pytest.raises(QuotaExceeded, match="stores 4,321 of its 4,330 bytes"):
            check_stored_bytes(session, project_id, Limits(stored_bytes=4330), 10)


def test_jobs_beyond_the_quota_are_stopped(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    running = make_job(status="running", gpu_seconds=60, running_since=now() - 50)
    queued = make_job(status="queued")
    dry_run = make_job(status="running", kind=DRY_RUN, running_since=now())
    validating = make_job(status="validating_files")
    with factory.begin() as session:
        assert stop_over_quota(session, Limits(gpu_seconds=1000)) == []
        assert stop_over_quota(session, Limits()) == []
        stopped = stop_over_quota(session, Limits(gpu_seconds=100))
        assert sorted(stopped) == sorted([running, queued, dry_run])
    with factory() as session:
        found = {job.id: job.status for job in session.query(Job)}
        messages = [event.message for event in session.query(Event)]
    assert found == {
        running: "pausing",
        queued: "paused",
        dry_run: "cancelled",
        validating: "validating_files",
    }
    assert len(messages) == 3 and all("100 GPU seconds" in each for each in messages)


def test_a_project_is_archived_when_nothing_of_it_is_live(
    factory: sessionmaker[Session], project_id: str, make_job: MakeJob
) -> None:
    job_id = make_job(status="queued")
    with factory() as session, pytest.raises(InvalidRequest, match="has 1 unfinished"):
        archive_project(session, session.get_one(Project, project_id))
    with factory.begin() as session:
        transition(session, job_id, "cancelled")
        owned = {"project_id": project_id, "name": "e"}
        session.add(Eval(**owned, id="e", data_source_config={}, testing_criteria=[]))
        session.flush()
        session.add(EvalRun(**owned, id="r", eval_id="e", model="m", data_source={}))
        session.flush()
        with pytest.raises(InvalidRequest, match="has 1 unfinished runs of evals"):
            archive_project(session, session.get_one(Project, project_id))
        assert cancel(session, "r")
        archive_project(session, session.get_one(Project, project_id))
    with factory.begin() as session:
        assert session.get_one(Project, project_id).archived_at is not None
        with pytest.raises(LookupError):
            find_project(session, "tests")
        assert find_project(session, project_id).id == project_id
        for _ in range(2):
            create_project(session, "twin")
        with pytest.raises(InvalidRequest, match="Several projects"):
            find_project(session, "twin")

"""The state machine: every pair of statuses, and what a change writes beside the status."""

import ast
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.errors import IllegalTransition, JobNotFound, StaleFence
from core.models import Event, Job, Outbox
from core.states import STATUSES, transition
from tests.core.jobs import MakeJob

LEGAL = {
    ("validating_files", "queued"),
    ("validating_files", "failed"),
    ("validating_files", "cancelled"),
    ("queued", "running"),
    ("queued", "paused"),
    ("queued", "cancelled"),
    ("running", "queued"),
    ("running", "pausing"),
    ("running", "paused"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("pausing", "running"),
    ("pausing", "paused"),
    ("pausing", "succeeded"),
    ("pausing", "failed"),
    ("pausing", "cancelled"),
    ("paused", "queued"),
    ("paused", "cancelled"),
}
SOURCES = ("api", "core", "workers")


def test_every_pair_of_statuses(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    for source in STATUSES:
        for target in STATUSES:
            job_id = make_job(status=source)
            legal = (source, target) in LEGAL
            with factory.begin() as session:
                if legal:
                    assert transition(session, job_id, target).status == target
                else:
                    with pytest.raises(IllegalTransition, match=f"{source}.*{target}"):
                        transition(session, job_id, target)
            with factory() as session:
                events = session.scalars(select(Event).where(Event.job_id == job_id)).all()
                assert session.get_one(Job, job_id).status == (target if legal else source)
                assert len(events) == (1 if legal else 0), (source, target)


@pytest.mark.parametrize("target", [*STATUSES])
def test_only_staying_with_the_holder_keeps_the_fence(
    factory: sessionmaker[Session], make_job: MakeJob, target: str
) -> None:
    for source in (source for source, to in LEGAL if to == target):
        job_id = make_job(status=source, fence=7, lease_owner="w", lease_expires_at=1.0)
        with factory.begin() as session:
            job = transition(session, job_id, target)
        same_holder = {source, target} == {"running", "pausing"}
        assert job.fence == (7 if same_holder else 8), (source, target)
        if target not in ("running", "pausing"):
            assert (job.lease_owner, job.lease_expires_at) == (None, None)


def test_a_stale_fence_is_refused(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    job_id = make_job(status="running", fence=3)
    with factory.begin() as session, pytest.raises(StaleFence):
        transition(session, job_id, "succeeded", fence=2)
    with factory() as session:
        assert session.get_one(Job, job_id).status == "running"


def test_an_unknown_job(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session, pytest.raises(JobNotFound, match="ftjob-none"):
        transition(session, "ftjob-none", "cancelled")


def test_a_rolled_back_change_leaves_nothing(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job(status="running")
    with factory() as session:
        transition(session, job_id, "succeeded")
        session.rollback()
    with factory() as session:
        assert session.get_one(Job, job_id).status == "running"
        assert session.scalars(select(Event)).all() == []
        assert session.scalars(select(Outbox)).all() == []


def test_terminal_states_write_their_webhook(
    factory: sessionmaker[Session], make_job: MakeJob, project_id: str
) -> None:
    for status in ("succeeded", "failed", "cancelled"):
        job_id = make_job(status="running")
        with factory.begin() as session:
            transition(session, job_id, status)
        with factory.begin() as session:
            row = session.scalars(select(Outbox)).one()
            assert row.kind == "webhook" and row.payload["project_id"] == project_id
            assert row.payload["event"]["type"] == f"fine_tuning.job.{status}"
            assert row.payload["event"]["data"] == {"id": job_id}
            session.delete(row)


def test_queued_jobs_wake_a_training_worker(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job(status="validating_files")
    with factory.begin() as session:
        transition(session, job_id, "queued")
        assert session.scalars(select(Outbox)).one().payload == {"queue": "train"}


def test_a_failure_keeps_its_error_and_says_it(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    error = {"code": "out_of_memory", "message": "The GPU ran out of memory.", "param": None}
    job_id = make_job(status="running")
    with factory.begin() as session:
        job = transition(session, job_id, "failed", error=error)
        event = session.scalars(select(Event)).one()
    assert job.error == error and job.finished_at is not None
    assert (event.level, event.message) == ("error", "The GPU ran out of memory.")


def test_dates(factory: sessionmaker[Session], make_job: MakeJob) -> None:
    first, cancelled = make_job(started_at=5), make_job(status="running")
    with factory.begin() as session:
        assert transition(session, first, "running").started_at == 5
        assert transition(session, first, "succeeded").finished_at is not None
        assert transition(session, cancelled, "cancelled").finished_at is None


def test_only_the_state_machine_writes_a_job_status() -> None:
    root = Path(__file__).parents[2]
    files = [path for folder in SOURCES for path in (root / folder).rglob("*.py")]
    assert len(files) > 10
    offences = [
        f"{path.relative_to(root)}:{line}"
        for path in files
        if path != root / "core" / "states.py"
        for line in _status_writes(path.read_text(encoding="utf-8"))
    ]
    assert offences == []


def test_the_search_for_status_writes_finds_them() -> None:
    source = (
        'job.status = "x"\nJob(status="x")\nupdate(Job).where(a).values(status="x")\nf(status=1)'
    )
    assert [*_status_writes(source)] == [1, 2, 3]


def _status_writes(source: str) -> list[int]:
    return sorted(
        node.lineno for node in ast.walk(ast.parse(source)) if _sets(node) or _passes(node)
    )


def _sets(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(
        isinstance(target, ast.Attribute)
        and target.attr == "status"
        and "job" in ast.unparse(target.value).lower()
        for target in targets
    )


def _passes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    of_job = called == "Job" or ("update(Job)" in called and called.endswith(".values"))
    return of_job and any(keyword.arg == "status" for keyword in node.keywords)

"""What a project does not want to keep is deleted in time, recorded, and never while needed."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from core import retention
from core.clock import now
from core.events import add_event
from core.fenced import FencedWriter
from core.keys import create_project
from core.models import (
    AuditEntry,
    Checkpoint,
    Eval,
    EvalItem,
    EvalRun,
    Event,
    File,
    Job,
    Metric,
    MetricPoint,
    Project,
    Rollout,
    Sample,
)
from core.registry import Registry
from core.retention import DAY_S
from core.settings import Settings
from tests.api.rollouts import add_rollouts, line
from tests.fakes.memory_store import MemoryStore
from workers.app import make_app
from workers.context import Context
from workers.retention import retain_once
from workers.tasks import RETAIN

ALL = dict.fromkeys(retention.KINDS, 30)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def context(
    settings: Settings, factory: sessionmaker[Session], store: MemoryStore
) -> Iterator[Context]:
    with factory.begin() as session:
        create_project(session, "tests").retention = dict(ALL)
    yield Context(settings, factory, store, Registry([], source=settings.models_file))


def owner(session: Session) -> Project:
    return session.scalars(select(Project).order_by(Project.created_at)).first()  # type: ignore[return-value]


def file(context: Context, name: str, *, days: int) -> str:
    """A file that was uploaded so many days ago."""
    context.store.put_bytes(f"files/{name}", b"abc")
    with context.sessions.begin() as session:
        row = File(
            project_id=owner(session).id,
            filename=name,
            purpose="fine-tune",
            bytes=3,
            sha256="",
            object_key=f"files/{name}",
            created_at=now() - days * DAY_S,
        )
        session.add(row)
        session.flush()
        return row.id


def job(context: Context, status: str = "succeeded", *, days: int, **columns: Any) -> str:
    """A job that ended so many days ago, with something of every kind."""
    store, then = context.store, now() - days * DAY_S
    with context.sessions.begin() as session:
        ended = then if status in ("succeeded", "failed") else None
        values = {"training_file": "file-x", "method": {}, "result_files": [], **columns}
        row = Job(
            project_id=owner(session).id,
            model="m",
            seed=1,
            status=status,
            created_at=then,
            finished_at=ended,
            fence=1,
            **values,
        )
        session.add(row)
        session.flush()
        add_event(session, row.id, "old").created_at = then
        add_rollouts(session, store, row.id, 1, [line(0, "a"), line(1, "b")])
        prefix = f"models/{row.id}/1"
        session.add(
            Checkpoint(
                job_id=row.id,
                project_id=row.project_id,
                phase="export",
                step=1,
                name=f"ft:{row.id}",
                object_prefix=f"{prefix}/model",
                kind="adapter",
                metrics={},
                is_final=True,
                has_state=False,
                bytes=5,
            )
        )
        for key in (f"{prefix}/model/w", f"{prefix}/merged/w", f"jobs/{row.id}/reports/base.json"):
            store.put_bytes(key, b"bytes")
    FencedWriter(context.sessions, row.id, 1).metrics("rl", 1, {"step": 1})
    return row.id


def count(context: Context, table: Any, **columns: Any) -> int:
    conditions = [getattr(table, name) == value for name, value in columns.items()]
    with context.sessions() as session:
        return session.scalar(select(func.count()).select_from(table).where(*conditions)) or 0


def kinds(context: Context) -> list[str]:
    return sorted(item.kind for item in retain_once(context))


def test_all_of_an_old_job_goes_and_nothing_of_a_young_one(
    context: Context, store: MemoryStore
) -> None:
    old, young = job(context, days=31), job(context, days=29)
    old_file, young_file = file(context, "old", days=31), file(context, "young", days=29)
    assert kinds(context) == sorted(retention.KINDS)
    assert not [key for key in store.objects if old in key]
    assert sum(young in key for key in store.objects) == 4
    assert "files/old" not in store.objects and "files/young" in store.objects
    for table in (Sample, Rollout, Metric):
        assert count(context, table, job_id=old) == 0
        assert count(context, table, job_id=young) > 0
    with context.sessions() as session:
        assert session.get_one(File, old_file).deleted_at is not None
        assert session.get_one(File, young_file).deleted_at is None
        gone = set(session.scalars(select(Checkpoint.job_id).where(Checkpoint.deleted_at > 0)))
    assert gone == {old}
    assert count(context, MetricPoint) == 2
    assert kinds(context) == []


def test_each_deletion_is_recorded(context: Context) -> None:
    old, name = job(context, days=31), file(context, "old", days=31)
    retain_once(context)
    with context.sessions() as session:
        entries = session.scalars(select(AuditEntry)).all()
        messages = set(session.scalars(select(Event.message).where(Event.job_id == old)))
    assert {entry.action for entry in entries} == {"retention.deleted"}
    found = {entry.data["kind"]: (entry.object_id, entry.data) for entry in entries if entry.data}
    assert set(found) == set(retention.KINDS)
    assert found["files"] == (name, {"kind": "files", "count": 1, "bytes": 3, "days": 30})
    assert found["samples"][0] == found["events"][0] == old
    assert found["samples"][1]["count"] == 2 and found["samples"][1]["bytes"] > 0
    assert messages == {
        f"Deleted the weights of ft:{old}: the project keeps checkpoints for 30 days",
        "Deleted its 2 samples and its evaluation reports: the project keeps samples for 30 days",
        "Deleted the metrics of its 1 steps: the project keeps metrics for 30 days",
    }


@pytest.mark.parametrize("status", ["validating_files", "queued", "running", "pausing", "paused"])
def test_nothing_that_a_live_job_needs_is_deleted(
    context: Context, store: MemoryStore, status: str
) -> None:
    files = {name: file(context, name, days=99) for name in ("train", "valid", "warm", "result")}
    parent = job(context, days=99)
    job(
        context,
        status,
        days=99,
        training_file=files["train"],
        validation_file=files["valid"],
        warm_start_file=files["warm"],
        result_files=[files["result"]],
        init_from=f"ft:{parent}",
    )
    assert kinds(context) == ["events", "metrics", "samples"]  # those of the parent
    assert {key for key in store.objects if key.startswith("files/")} == {
        f"files/{name}" for name in files
    }
    assert count(context, Checkpoint, deleted_at=None) == 2


def test_a_model_that_another_project_trains_from_stays(context: Context) -> None:
    parent = job(context, days=99)
    child = job(context, "queued", days=99, init_from=f"ft:{parent}")
    with context.sessions.begin() as session:
        session.get_one(Job, child).project_id = create_project(session, "other").id
    assert "checkpoints" not in kinds(context)


def test_what_a_running_eval_needs_stays(context: Context) -> None:
    name, parent = file(context, "rows", days=99), job(context, days=99)
    with context.sessions.begin() as session:
        project_id = owner(session).id
        made = Eval(project_id=project_id, name="e", data_source_config={}, testing_criteria=[])
        session.add(made)
        session.flush()
        session.add(
            EvalRun(
                project_id=project_id,
                eval_id=made.id,
                name="r",
                model=f"ft:{parent}",
                data_source={"type": "jsonl", "source": {"type": "file_id", "id": name}},
            )
        )
    assert kinds(context) == ["events", "metrics", "samples"]
    with context.sessions() as session:
        items = list(retention.items(session, owner(session), until=now()))
    assert {item.kind for item in items if item.held_by} == {"files", "checkpoints"}


def evaluated(context: Context, job_id: str) -> str:
    """An evaluation in the eval of a job, with one item; the run's id."""
    with context.sessions.begin() as session:
        project_id = owner(session).id
        made = Eval(
            project_id=project_id,
            job_id=job_id,
            name="e",
            data_source_config={},
            testing_criteria=[],
        )
        session.add(made)
        session.flush()
        run = EvalRun(
            project_id=project_id,
            eval_id=made.id,
            name="r",
            model="m",
            phase="base_evaluation",
            step=0,
            status="completed",
            data_source={},
        )
        session.add(run)
        session.flush()
        session.add(EvalItem(run_id=run.id, position=0, status="pass", item={}, results=[]))
        return run.id


def test_the_evaluations_of_a_job_go_with_its_samples(context: Context) -> None:
    old, young = (job(context, days=days) for days in (31, 29))
    gone, kept = evaluated(context, old), evaluated(context, young)
    assert "samples" in kinds(context)
    assert (count(context, EvalRun, id=gone), count(context, EvalItem, run_id=gone)) == (0, 0)
    assert (count(context, EvalRun, id=kept), count(context, EvalItem, run_id=kept)) == (1, 1)


def test_a_job_that_came_no_further_than_an_evaluation_keeps_none(context: Context) -> None:
    failed = job(context, "failed", days=31)
    kinds(context)
    gone = evaluated(context, failed)
    assert kinds(context) == ["samples"]
    assert count(context, EvalRun, id=gone) == 0
    assert kinds(context) == []


def test_a_cancelled_job_ended_with_its_last_event(context: Context) -> None:
    cancelled = job(context, "cancelled", days=99)
    assert "samples" in kinds(context)
    again = job(context, "cancelled", days=99)
    with context.sessions.begin() as session:
        add_event(session, again, "cancelled just now")
    retain_once(context)
    assert count(context, Sample, job_id=again) == 2
    assert count(context, Sample, job_id=cancelled) == 0


def test_without_a_time_everything_stays(context: Context) -> None:
    job(context, days=9999)
    file(context, "old", days=9999)
    with context.sessions.begin() as session:
        owner(session).retention = None
    assert kinds(context) == []
    with context.sessions.begin() as session:
        owner(session).retention = {"samples": 9998}
    assert kinds(context) == ["samples"]


def test_a_store_that_is_down_leaves_everything_for_later(
    context: Context, store: MemoryStore
) -> None:
    job(context, days=31)
    file(context, "old", days=31)
    store.down = True
    assert "files" not in kinds(context)
    assert count(context, File, deleted_at=None) == 1
    store.down = False
    retain_once(context)
    assert count(context, File, deleted_at=None) == 0
    assert kinds(context) == []


def test_beat_asks_for_it(settings: Settings) -> None:
    app = make_app(settings)
    entries: Any = app.conf.beat_schedule
    assert RETAIN in app.tasks
    assert RETAIN in {entry["task"] for entry in entries.values()}

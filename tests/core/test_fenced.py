"""The holder's writes: refused under an old fence, repeatable, and undone by a rewind."""

import json
from collections.abc import Callable

import pytest
from sqlalchemy import select, update
from sqlalchemy.event import listen
from sqlalchemy.orm import Session, sessionmaker

from core import samples
from core.errors import StaleFence
from core.fenced import FencedWriter
from core.lease import claim
from core.models import (
    Checkpoint,
    Event,
    File,
    Job,
    Metric,
    MetricPoint,
    MetricSeries,
    Rollout,
    Sample,
)
from core.states import transition
from tests.api.rollouts import line
from tests.core.jobs import MakeJob


@pytest.fixture
def writer(factory: sessionmaker[Session], make_job: MakeJob) -> FencedWriter:
    make_job()
    with factory.begin() as session:
        taken = claim(session, owner="w1", ttl_s=60)
    assert taken is not None
    return FencedWriter(factory, taken.job_id, taken.fence)


def open_and_close(writer: FencedWriter) -> None:
    """Open a transaction of the writer's and commit it."""
    with writer.transaction() as (_, job):
        assert job.id == writer.job_id


WRITES: dict[str, Callable[[FencedWriter], object]] = {
    "transaction": open_and_close,
    "event": lambda w: w.event("hello"),
    "metrics": lambda w: w.metrics("rl", 1, {"a": 1}),
    "step_ended": lambda w: w.step_ended(
        "rl", 1, {"a": 1}, message="Step 1/2", total_steps=2, estimated_finish=9
    ),
    "rollout": lambda w: w.rollout(1, "train", "key", 8),
    "progress": lambda w: w.progress("rl", 1, 10, None),
    "checkpoint": lambda w: add_checkpoint(w, 1),
    "last_checkpoint": lambda w: w.last_checkpoint(),
    "drop_state": lambda w: w.drop_state(["ftckpt_x"]),
    "retire": lambda w: w.retire(["ftckpt_x"]),
    "result_file": lambda w: w.result_file("a.csv", "key", 3, "0" * 64),
    "rewind": lambda w: w.rewind(0),
    "transition": lambda w: w.transition("succeeded"),
}


def add_checkpoint(
    writer: FencedWriter, step: int, *, phase: str = "rl", has_state: bool = True, name: str = ""
) -> str:
    return writer.checkpoint(
        step,
        name or f"ft:base:org::{phase}{step}",
        f"jobs/x/checkpoints/{phase}-{step}",
        "adapter",
        {"step": step},
        is_final=False,
        has_state=has_state,
        phase=phase,
    )


def count(factory: sessionmaker[Session], table: type) -> int:
    with factory() as session:
        return len(session.scalars(select(table)).all())


def test_every_public_method_is_covered() -> None:
    methods = {name for name in vars(FencedWriter) if not name.startswith("_")}
    assert methods == set(WRITES)


@pytest.mark.parametrize("method", WRITES)
def test_a_stale_fence_is_refused(
    factory: sessionmaker[Session], writer: FencedWriter, method: str
) -> None:
    with factory.begin() as session:
        session.execute(update(Job).values(fence=Job.fence + 1))
    tables = (Event, Metric, Rollout, Checkpoint, File)
    before = [count(factory, table) for table in tables]
    with pytest.raises(StaleFence):
        WRITES[method](writer)
    assert [count(factory, table) for table in tables] == before
    with factory() as session:
        assert session.scalars(select(Job.status)).one() == "running"


@pytest.mark.parametrize("method", WRITES)
def test_a_cancelled_job_refuses_its_supervisor(
    factory: sessionmaker[Session], writer: FencedWriter, method: str
) -> None:
    with factory.begin() as session:
        transition(session, writer.job_id, "cancelled")
    with pytest.raises(StaleFence):
        WRITES[method](writer)
    with factory() as session:
        assert session.scalars(select(Job.status)).one() == "cancelled"


@pytest.mark.parametrize("method", [name for name in WRITES if name != "transition"])
def test_every_write_can_be_repeated(writer: FencedWriter, method: str) -> None:
    WRITES[method](writer)
    WRITES[method](writer)


def test_metrics_and_rollouts_replace_their_step(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    for value in (1, 2):
        writer.metrics("rl", 1, {"reward": value})
        writer.rollout(1, "train", f"key-{value}", 8)
    with factory() as session:
        assert session.scalars(select(Metric)).one().data == {"reward": 2}
        assert session.scalars(select(Rollout)).one().object_key == "key-2"


def test_a_step_is_one_commit_with_its_numbers_its_event_and_the_progress(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    commits: list[object] = []
    listen(factory.kw["bind"], "commit", commits.append)
    WRITES["step_ended"](writer)
    assert len(commits) == 1
    with factory() as session:
        event = session.scalars(select(Event).order_by(Event.seq.desc())).first()
        assert event is not None
        assert (event.type, event.message, event.data) == ("metrics", "Step 1/2", {"a": 1})
        assert (event.phase, event.step) == ("rl", 1)
        assert session.scalars(select(Metric)).one().data == {"a": 1}
        job = session.scalars(select(Job)).one()
        assert (job.phase, job.step, job.total_steps, job.estimated_finish) == ("rl", 1, 2, 9)


def test_nan_is_refused(factory: sessionmaker[Session], writer: FencedWriter) -> None:
    with pytest.raises(Exception, match="not JSON compliant"):
        writer.metrics("rl", 1, {"loss": float("nan")})
    assert count(factory, Metric) == 0


def test_events_hold_what_models_write(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    writer.event("a\x00b\ud83d", data={"text": "\x00\ud83d"})
    with factory() as session:
        event = session.scalars(select(Event).order_by(Event.seq.desc())).first()
    assert event is not None and event.message == "a\ufffdb?"
    assert event.data == {"text": "\ufffd?"}


def test_a_checkpoint_keeps_its_id(factory: sessionmaker[Session], writer: FencedWriter) -> None:
    first = add_checkpoint(writer, 5, name="ft:a")
    writer.retire([first])
    assert add_checkpoint(writer, 5, name="ft:b") == first
    with factory() as session:
        row = session.scalars(select(Checkpoint)).one()
    assert (row.name, row.deleted_at) == ("ft:b", None)


def test_the_last_checkpoint_is_the_furthest_resumable_one(writer: FencedWriter) -> None:
    assert writer.last_checkpoint() is None
    warm = add_checkpoint(writer, 40, phase="warm_start")
    assert (last := writer.last_checkpoint()) is not None and last.id == warm
    five, ten = add_checkpoint(writer, 5), add_checkpoint(writer, 10)
    add_checkpoint(writer, 20, has_state=False)
    assert (last := writer.last_checkpoint()) is not None and last.id == ten
    writer.drop_state([ten])
    assert (last := writer.last_checkpoint()) is not None and last.id == five
    writer.retire([five])
    assert (last := writer.last_checkpoint()) is not None and last.id == warm


def test_a_resumable_checkpoint_clears_failed_attempts(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    with factory.begin() as session:
        session.execute(update(Job).values(failed_attempts=2))
    add_checkpoint(writer, 1, has_state=False)
    with factory() as session:
        assert session.scalars(select(Job.failed_attempts)).one() == 2
    add_checkpoint(writer, 2)
    with factory() as session:
        assert session.scalars(select(Job.failed_attempts)).one() == 0


def test_result_files_keep_one_id_per_name(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    first = writer.result_file("step_metrics.csv", "key-1", 3, "1" * 64)
    other = writer.result_file("evaluation.json", "key-2", 4, "2" * 64)
    assert writer.result_file("step_metrics.csv", "key-3", 5, "3" * 64) == first
    with factory() as session:
        job = session.get_one(Job, writer.job_id)
        row = session.get_one(File, first)
    assert job.result_files == [first, other]
    assert (row.object_key, row.bytes, row.sha256) == ("key-3", 5, "3" * 64)
    assert (row.purpose, row.project_id, row.status) == (
        "fine-tune-results",
        job.project_id,
        "processed",
    )


def fill(writer: FencedWriter) -> None:
    for phase, step in (("warm_start", 1), ("warm_start", 2), ("rl", 1), ("rl", 2)):
        writer.metrics(phase, step, {})
        writer.event(f"{phase} {step}", step=step, phase=phase)
    for step in (0, 1, 2):
        writer.rollout(step, "train", "key", 8)


@pytest.mark.parametrize(
    ("phase", "step", "kept", "rollouts"),
    [
        ("rl", 1, ["warm_start 1", "warm_start 2", "rl 1"], [0, 1]),
        ("rl", 0, ["warm_start 1", "warm_start 2"], [0]),
        ("warm_start", 1, ["warm_start 1"], [0]),
        ("loading", 0, [], [0]),
    ],
)
def test_a_rewind_forgets_what_comes_after(
    factory: sessionmaker[Session],
    writer: FencedWriter,
    phase: str,
    step: int,
    kept: list[str],
    rollouts: list[int],
) -> None:
    fill(writer)
    writer.event("no step")
    writer.rewind(step, phase=phase)
    with factory() as session:
        metrics = [f"{row.phase} {row.step}" for row in session.scalars(select(Metric))]
        events = session.scalars(select(Event).order_by(Event.seq)).all()
        steps = session.scalars(select(Rollout.step).order_by(Rollout.step)).all()
        job = session.get_one(Job, writer.job_id)
    assert sorted(metrics) == sorted(kept)
    *history, told = events
    assert [event.message for event in history[1:]] == [*kept, "no step"]
    assert told.data == {"rewound_to": {"phase": phase, "step": step}}
    assert [*steps] == rollouts
    assert (job.phase, job.step) == (phase, step)


def test_a_rewind_leaves_other_jobs_alone(
    factory: sessionmaker[Session], writer: FencedWriter, make_job: MakeJob
) -> None:
    make_job()
    with factory.begin() as session:
        taken = claim(session, owner="w2", ttl_s=60)
    assert taken is not None
    fill(FencedWriter(factory, taken.job_id, taken.fence))
    before = [count(factory, table) for table in (Metric, Event, Rollout)]
    writer.rewind(0, phase="loading")
    assert [count(factory, table) for table in (Metric, Event, Rollout)] == before


def test_progress_shows_on_the_job(factory: sessionmaker[Session], writer: FencedWriter) -> None:
    writer.progress("rl", 3, 20, 99)
    with factory() as session:
        job = session.get_one(Job, writer.job_id)
    assert (job.phase, job.step, job.total_steps, job.estimated_finish) == ("rl", 3, 20, 99)


def test_a_final_transition_ends_the_writer(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    writer.transition("succeeded", fine_tuned_model="ft:x", trained_tokens=5)
    with pytest.raises(StaleFence):
        writer.event("too late")
    with factory() as session:
        job = session.get_one(Job, writer.job_id)
    assert (job.status, job.fine_tuned_model, job.trained_tokens) == ("succeeded", "ft:x", 5)


def sample_rows(writer: FencedWriter, step: int, *values: float) -> list[dict[str, object]]:
    lines = [json.dumps(line(row, "text", value)).encode() for row, value in enumerate(values)]
    return [*samples.rows_of(lines, job_id=writer.job_id, step=step, split="train")]


def test_samples_come_and_go_with_their_step(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    for step in (1, 2):
        rows = sample_rows(writer, step, 0.1, 0.2)
        writer.rollout(step, "train", f"key-{step}", 2, bytes=9, rows=rows)
    writer.rollout(2, "train", "again", 1, rows=sample_rows(writer, 2, 0.7))
    with factory() as session:
        found = session.scalars(select(Sample).order_by(Sample.step, Sample.position)).all()
    assert [(row.step, row.position, row.reward) for row in found] == [
        (1, 0, 0.1),
        (1, 1, 0.2),
        (2, 0, 0.7),
    ]
    writer.rewind(1)
    with factory() as session:
        assert set(session.scalars(select(Sample.step))) == {1}
        assert [row.index_state for row in session.scalars(select(Rollout))] == ["indexed"]
    writer.rewind(0, phase="loading")
    assert count(factory, Sample) == 0


def test_samples_that_cannot_be_read_are_marked(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    writer.rollout(1, "train", "key", 8, rows=None)
    with factory() as session:
        assert session.scalars(select(Rollout.index_state)).one() == "lost"


def points(factory: sessionmaker[Session], name: str) -> list[tuple[str, int, float | None]]:
    query = (
        select(MetricSeries.phase, MetricPoint.step, MetricPoint.value)
        .join(MetricPoint, MetricPoint.series_id == MetricSeries.id)
        .where(MetricSeries.name == name)
        .order_by(MetricSeries.phase, MetricPoint.step)
    )
    with factory() as session:
        return [(phase, step, value) for phase, step, value in session.execute(query)]


def test_points_come_and_go_with_their_metrics(
    factory: sessionmaker[Session], writer: FencedWriter
) -> None:
    for phase, step in (("warm_start", 1), ("rl", 1), ("rl", 2), ("final_evaluation", 2)):
        writer.metrics(phase, step, {"a": step / 2, "b": None})
    writer.metrics("rl", 2, {"a": 7, "c": 1})
    assert points(factory, "a") == [
        ("final_evaluation", 2, 1.0),
        ("rl", 1, 0.5),
        ("rl", 2, 7.0),
        ("warm_start", 1, 0.5),
    ]
    assert points(factory, "b") == [
        ("final_evaluation", 2, None),
        ("rl", 1, None),
        ("warm_start", 1, None),
    ]
    writer.rewind(1)
    assert points(factory, "a") == [("rl", 1, 0.5), ("warm_start", 1, 0.5)]
    assert points(factory, "c") == []
    writer.rewind(0, phase="loading")
    assert points(factory, "a") == []

"""Writes of a job's holder: each is one transaction that a newer holder makes fail."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session, sessionmaker

from core import job_evals, samples, series, serving_proofs, states
from core.clock import now
from core.errors import StaleFence
from core.events import add_event
from core.models import Checkpoint, EvalRun, Event, File, Job, Metric, Rollout, Sample
from core.phases import PLACE, beside, beyond, later


class FencedWriter:
    """Writes for one job under one fence; every method raises StaleFence once it is outdated."""

    def __init__(self, factory: sessionmaker[Session], job_id: str, fence: int) -> None:
        self.job_id = job_id
        self.fence = fence
        self._factory = factory

    @contextmanager
    def _write(self, **columns: Any) -> Iterator[Session]:
        with self._factory.begin() as session:
            # Writing the row before anything else locks it: a cancel or a reaper waits for this
            # transaction, and writers of one job never interleave.
            held = session.scalar(
                update(Job)
                .where(Job.id == self.job_id, Job.fence == self.fence)
                .values(fence=self.fence, **columns)
                .returning(Job.id)
            )
            if held is None:
                raise StaleFence(self.job_id, self.fence)
            yield session

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Job]]:
        """Open one transaction on the job, for what no other method writes."""
        with self._write() as session:
            yield session, session.get_one(Job, self.job_id)

    def event(
        self,
        message: str,
        *,
        level: str = "info",
        type: str = "message",
        data: dict[str, Any] | None = None,
        step: int | None = None,
        phase: str = "rl",
    ) -> None:
        """Add an event; one with a `step` disappears when a resumed run starts before it."""
        with self._write() as session:
            add_event(
                session,
                self.job_id,
                message,
                level=level,
                type=type,
                data=data,
                step=step,
                phase=None if step is None else phase,
            )

    def metrics(
        self, phase: str, step: int, data: dict[str, Any], *, message: str | None = None
    ) -> None:
        """Store the numbers of a step, replacing earlier ones, with an event where one is worded.

        NaN is refused: send null.
        """
        with self._write() as session:
            self._put_metrics(session, phase, step, data)
            if message is not None:
                add_event(session, self.job_id, message, data=data, step=step, phase=phase)

    def step_ended(
        self,
        phase: str,
        step: int,
        data: dict[str, Any],
        *,
        message: str,
        total_steps: int | None,
        estimated_finish: int | None,
    ) -> None:
        """Do what `metrics` and `progress` do at once, with an event of type metrics."""
        progress = {"phase": phase, "step": step, "total_steps": total_steps}
        with self._write(**progress, estimated_finish=estimated_finish) as session:
            self._put_metrics(session, phase, step, data)
            options: dict[str, Any] = {"type": "metrics", "step": step, "phase": phase}
            add_event(session, self.job_id, message, data=data, **options)

    def _put_metrics(self, session: Session, phase: str, step: int, data: dict[str, Any]) -> None:
        session.merge(Metric(job_id=self.job_id, phase=phase, step=step, data=data))
        series.record(session, self.job_id, phase, step, data)

    def rollout(
        self,
        step: int,
        split: str,
        object_key: str,
        count: int,
        *,
        bytes: int | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        """Store where the samples of a step lie, with their rows, replacing an earlier entry.

        `rows` come from `core.samples.rows_of`; None when the file cannot be read.
        """
        with self._write() as session:
            session.merge(
                Rollout(
                    job_id=self.job_id,
                    step=step,
                    split=split,
                    object_key=object_key,
                    count=count,
                    bytes=bytes,
                    index_state="lost" if rows is None else "indexed",
                )
            )
            samples.replace(session, rows or [], job_id=self.job_id, step=step, split=split)

    def progress(
        self,
        phase: str,
        step: int,
        total_steps: int | None,
        estimated_finish: int | None,
    ) -> None:
        """Store where the run stands, for people who look at the job."""
        columns = {"phase": phase, "step": step, "total_steps": total_steps}
        with self._write(**columns, estimated_finish=estimated_finish):
            pass

    def checkpoint(
        self,
        step: int,
        name: str,
        object_prefix: str,
        kind: str,
        metrics: dict[str, Any],
        *,
        is_final: bool,
        has_state: bool,
        phase: str = "rl",
        bytes: int | None = None,
        proof: dict[str, Any] | None = None,
        prove_serving: bool = False,
    ) -> str:
        """Record a committed checkpoint and return its id; the manifest must be stored already.

        With `prove_serving` the model is asked through the serving service after the job's end.
        A second call for the same phase, step and `is_final` keeps the id and replaces the rest.
        A resumable checkpoint is progress: it clears the count of failed attempts.
        """
        with self._write() as session:
            row = session.scalar(
                select(Checkpoint).where(
                    Checkpoint.job_id == self.job_id,
                    Checkpoint.phase == phase,
                    Checkpoint.step == step,
                    Checkpoint.is_final == is_final,
                )
            )
            job = session.get_one(Job, self.job_id)
            if row is None:
                row = Checkpoint(
                    job_id=self.job_id,
                    project_id=job.project_id,
                    phase=phase,
                    step=step,
                    is_final=is_final,
                )
                session.add(row)
            row.name, row.object_prefix, row.kind = name, object_prefix, kind
            row.metrics, row.has_state, row.deleted_at = metrics, has_state, None
            row.bytes, row.proof = bytes, proof
            row.serving_due_at, row.serving_attempts = None, 0
            if prove_serving:
                row.serving_due_at = 0.0
                row.proof = {**(proof or {}), "serving": serving_proofs.BEGINNING}
            row.merged_status = row.merged_error = row.merged_at = None
            if has_state:
                job.failed_attempts = 0
            session.flush()
            return row.id

    def last_checkpoint(self) -> Checkpoint | None:
        """Return the furthest resumable checkpoint, or None: start from the beginning."""
        with self._write() as session:
            rows = session.scalars(
                select(Checkpoint).where(
                    Checkpoint.job_id == self.job_id,
                    Checkpoint.has_state,
                    Checkpoint.deleted_at.is_(None),
                )
            ).all()
        return max(rows, key=lambda row: (PLACE[row.phase], row.step), default=None)

    def drop_state(self, checkpoint_ids: Sequence[str]) -> None:
        """Mark checkpoints as no longer resumable; delete their state objects afterwards."""
        self._update_checkpoints(checkpoint_ids, {"has_state": False})

    def retire(self, checkpoint_ids: Sequence[str]) -> None:
        """Mark checkpoints as deleted; delete their objects afterwards."""
        self._update_checkpoints(checkpoint_ids, {"has_state": False, "deleted_at": now()})

    def _update_checkpoints(self, ids: Sequence[str], values: dict[str, Any]) -> None:
        with self._write() as session:
            session.execute(
                update(Checkpoint)
                .where(Checkpoint.job_id == self.job_id, Checkpoint.id.in_(ids))
                .values(values)
            )

    def result_file(self, filename: str, object_key: str, bytes: int, sha256: str) -> str:
        """Publish a stored object as a result file of the job and return its file id.

        A result file of the same name keeps its id and gets the new content.
        """
        with self._write() as session:
            job = session.get_one(Job, self.job_id)
            row = session.scalar(
                select(File).where(File.id.in_(job.result_files), File.filename == filename)
            )
            if row is None:
                row = File(
                    project_id=job.project_id, filename=filename, purpose="fine-tune-results"
                )
                session.add(row)
            row.object_key, row.bytes, row.sha256 = object_key, bytes, sha256
            session.flush()
            if row.id not in job.result_files:
                job.result_files = [*job.result_files, row.id]
            return row.id

    def rewind(self, step: int, *, phase: str = "rl") -> None:
        """Forget metrics, step events and samples beyond the point a resumed run starts from.

        `rewind(0, phase="loading")` is a start from the beginning. When events are forgotten, an
        event says so: somebody may have seen them already.
        """
        # Rollouts carry no phase; those with a step number above 0 come from RL.
        last_rollout = step if PLACE[phase] >= PLACE["rl"] else 0
        with self._write() as session:
            session.execute(
                delete(Metric).where(Metric.job_id == self.job_id, beyond(Metric, phase, step))
            )
            forgotten = session.execute(
                delete(Event)
                .where(Event.job_id == self.job_id, beyond(Event, phase, step))
                .returning(Event.seq)
            ).all()
            if forgotten:
                add_event(
                    session,
                    self.job_id,
                    f"Events past step {step} of phase {phase} do not count any more:"
                    " the job starts again from there",
                    data={"rewound_to": {"phase": phase, "step": step}},
                )
            job_evals.forget_runs(session, self.job_id, beyond(EvalRun, phase, step))
            if phases_after := later(phase):
                series.forget(session, self.job_id, *phases_after)
            series.forget(session, self.job_id, *beside(phase), beyond=step)
            for kept in (Rollout, Sample):
                session.execute(
                    delete(kept).where(kept.job_id == self.job_id, kept.step > last_rollout)
                )
            session.execute(update(Job).where(Job.id == self.job_id).values(phase=phase, step=step))

    def transition(self, to: str, **details: Any) -> None:
        """Move the job to `to` (see `states.transition`); ends this writer unless `to` is held."""
        with self._write() as session:
            states.transition(session, self.job_id, to, fence=self.fence, **details)

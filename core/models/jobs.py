"""Jobs and what they leave behind: events, metrics, samples, checkpoints.

Times are unix seconds; only `core.states` writes `Job.status`.
"""

from typing import Any

from sqlalchemy import BigInteger, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id
from core.models.base import Base, Json, RowNumber

#: The kinds of jobs: one trains, the other only looks at what the grader makes of the model.
TRAINING, DRY_RUN = "training", "dry_run"


class Job(Base):
    """A fine-tuning job or a dry run: what the user asked for, where it stands, and who holds it.

    `fence` rises whenever the holder changes; a write under an older one is refused. A dry run,
    told by its `kind`, has a `report` at its end. `plan` is what a worker decides or is told beside
    the method: the rows and samples of a dry run, how a job looks at its first groups. `eval_id` is
    the eval that keeps its validation steps as runs, `cloned_from` the job whose settings it took.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index(None, "project_id", "created_at", "seq"), Index(None, "status"))

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("ftjob-"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    kind: Mapped[str] = mapped_column(String(16), default=TRAINING, server_default=TRAINING)
    status: Mapped[str] = mapped_column(String(32), default="validating_files")
    model: Mapped[str] = mapped_column(Text)
    init_from: Mapped[str | None] = mapped_column(Text)
    method: Mapped[dict[str, Any]] = mapped_column(Json)
    hyperparameters: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    training_file: Mapped[str] = mapped_column(String(64))
    validation_file: Mapped[str | None] = mapped_column(String(64))
    warm_start_file: Mapped[str | None] = mapped_column(String(64))
    seed: Mapped[int] = mapped_column(BigInteger)
    suffix: Mapped[str | None] = mapped_column(String(64))
    meta: Mapped[dict[str, str] | None] = mapped_column("metadata", Json)
    integrations: Mapped[list[dict[str, Any]] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    started_at: Mapped[int | None] = mapped_column(BigInteger)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[dict[str, Any] | None] = mapped_column(Json)
    fine_tuned_model: Mapped[str | None] = mapped_column(Text)
    trained_tokens: Mapped[int | None] = mapped_column(BigInteger)
    result_files: Mapped[list[str]] = mapped_column(Json, default=list)
    estimated_finish: Mapped[int | None] = mapped_column(BigInteger)
    priority: Mapped[int] = mapped_column(Integer, default=0)
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    failed_attempts: Mapped[int] = mapped_column(Integer, default=0)
    phase: Mapped[str | None] = mapped_column(String(32))
    step: Mapped[int] = mapped_column(Integer, default=0)
    total_steps: Mapped[int | None] = mapped_column(Integer)
    plan: Mapped[dict[str, Any] | None] = mapped_column(Json)
    report: Mapped[dict[str, Any] | None] = mapped_column(Json)
    eval_id: Mapped[str | None] = mapped_column(String(64))
    cloned_from: Mapped[str | None] = mapped_column(String(64))


class Event(Base):
    """One line of a job's history; `seq` gives the order and is never used twice."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "job_id", "seq"), {"sqlite_autoincrement": True})

    seq: Mapped[int] = mapped_column(RowNumber, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True, default=lambda: new_id("ftevent-"))
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    level: Mapped[str] = mapped_column(String(8), default="info")
    type: Mapped[str] = mapped_column(String(32), default="message")
    message: Mapped[str] = mapped_column(Text)
    data: Mapped[dict[str, Any] | None] = mapped_column(Json)
    phase: Mapped[str | None] = mapped_column(String(32))
    step: Mapped[int | None] = mapped_column(Integer)


class Metric(Base):
    """The numbers of one step of one phase."""

    __tablename__ = "metrics"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    phase: Mapped[str] = mapped_column(String(32), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    data: Mapped[dict[str, Any]] = mapped_column(Json)


class Rollout(Base):
    """Where the samples of one step lie; `split` is `train` or `valid`."""

    __tablename__ = "rollouts"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    split: Mapped[str] = mapped_column(String(16), primary_key=True)
    object_key: Mapped[str] = mapped_column(Text)
    count: Mapped[int] = mapped_column(Integer)


class Sample(Base):
    """What is searched of one completion; its text is line `position` of the step's rollouts.

    `row` is the dataset's row (from 0), `reward` null when the grading failed with `failure` or
    the grader abstained; `sub_scores` maps each grader of a multi grader to its score.
    """

    __tablename__ = "samples"
    __table_args__ = (
        UniqueConstraint("job_id", "split", "step", "position"),
        Index(None, "job_id", "reward"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("sample_"))
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    split: Mapped[str] = mapped_column(String(16))
    step: Mapped[int] = mapped_column(Integer)
    position: Mapped[int] = mapped_column(Integer)
    row: Mapped[int] = mapped_column(Integer)
    reward: Mapped[float | None] = mapped_column(Float(53))
    advantage: Mapped[float | None] = mapped_column(Float(53))
    failure: Mapped[str | None] = mapped_column(String(64))
    truncated: Mapped[bool]
    tokens: Mapped[int] = mapped_column(Integer)
    sub_scores: Mapped[dict[str, Any] | None] = mapped_column(Json)


class Checkpoint(Base):
    """Committed weights, usable as a model under `name`; with `has_state` also resumable.

    `proof` holds the numbers of loading them in a fresh engine.
    """

    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("job_id", "phase", "step", "is_final"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("ftckpt_"))
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    phase: Mapped[str] = mapped_column(String(32))
    step: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    object_prefix: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(16))
    metrics: Mapped[dict[str, Any]] = mapped_column(Json)
    is_final: Mapped[bool]
    has_state: Mapped[bool]
    proof: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)

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
    `gpu_seconds` counts the times it was held that are over; `running_since` begins the present.
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
    running_since: Mapped[int | None] = mapped_column(BigInteger)
    gpu_seconds: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
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


class MetricSeries(Base):
    """The name of one number among the metrics of a phase: `MetricPoint` has its curve."""

    __tablename__ = "metric_series"
    __table_args__ = (UniqueConstraint("job_id", "phase", "name"),)

    id: Mapped[int] = mapped_column(RowNumber, primary_key=True, autoincrement=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    phase: Mapped[str] = mapped_column(String(32))
    name: Mapped[str] = mapped_column(Text)


class MetricPoint(Base):
    """One number of one step, out of `Metric.data`; null where it was not measured.

    A curve over 100,000 steps is read from narrow rows that lie side by side.
    """

    __tablename__ = "metric_points"
    __table_args__ = ({"sqlite_with_rowid": False},)

    series_id: Mapped[int] = mapped_column(ForeignKey("metric_series.id"), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    value: Mapped[float | None] = mapped_column(Float(53))


class Rollout(Base):
    """Where the samples of one step lie; `split` is `train` or `valid`.

    `index_state` says whether their rows are in `samples`: `indexed`, `waiting` for a worker (as
    those recorded before that table was there), or `lost` when the stored file cannot be read.
    `bytes` is the stored file's size, null where it was not recorded.
    """

    __tablename__ = "rollouts"
    __table_args__ = (Index(None, "index_state"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    split: Mapped[str] = mapped_column(String(16), primary_key=True)
    object_key: Mapped[str] = mapped_column(Text)
    count: Mapped[int] = mapped_column(Integer)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    index_state: Mapped[str] = mapped_column(
        String(16), default="indexed", server_default="waiting"
    )


class Sample(Base):
    """What is searched of one completion; its text is line `position` of the step's rollouts.

    `row` is the dataset's row (from 0), `group` counts the prompts of a step. `reward` is null when
    the grading failed with `failure` or the grader abstained; a failure beside a reward is one that
    the grader's `invalid_grade` stood in for. `failed_grader` is the part that failed,
    `sub_scores` maps each grader of a multi grader to its score, `preview` begins the text.
    """

    __tablename__ = "samples"
    __table_args__ = (
        UniqueConstraint("job_id", "step", "split", "position"),
        Index(None, "job_id", "reward", "step", "split", "position"),
        Index(None, "job_id", "row", "step", "split", "position"),
        Index(None, "job_id", "failure", "step", "split", "position"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("sample_"))
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    split: Mapped[str] = mapped_column(String(16))
    step: Mapped[int] = mapped_column(Integer)
    position: Mapped[int] = mapped_column(Integer)
    group: Mapped[int] = mapped_column("group_number", Integer)
    row: Mapped[int] = mapped_column(Integer)
    reward: Mapped[float | None] = mapped_column(Float(53))
    advantage: Mapped[float | None] = mapped_column(Float(53))
    failure: Mapped[str | None] = mapped_column(String(64))
    failed_grader: Mapped[str | None] = mapped_column(Text)
    truncated: Mapped[bool]
    tokens: Mapped[int] = mapped_column(Integer)
    sub_scores: Mapped[dict[str, Any] | None] = mapped_column(Json)
    preview: Mapped[str] = mapped_column(Text)


class Checkpoint(Base):
    """Committed weights, usable as a model under `name`; with `has_state` also resumable.

    `proof` holds the numbers of loading them in a fresh engine, `bytes` is the size of the model's
    files, null where it was not recorded. The `merged_…` columns tell how far a worker is with
    folding an adapter into its base model: `queued`, `running`, `ready` or `failed`, since when,
    and why it failed. The `serving_…` columns are the queue of `core.serving_proofs`.
    """

    __tablename__ = "checkpoints"
    __table_args__ = (
        UniqueConstraint("job_id", "phase", "step", "is_final"),
        Index(None, "merged_status"),
        Index(None, "serving_due_at"),
    )

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
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    merged_status: Mapped[str | None] = mapped_column(String(16))
    merged_error: Mapped[str | None] = mapped_column(Text)
    merged_at: Mapped[int | None] = mapped_column(BigInteger)
    serving_due_at: Mapped[float | None] = mapped_column(Float(53))
    serving_attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)

"""The tables. Times are unix seconds; only `core.states` writes `Job.status`.

`seq` tells rows of one second apart, the later one having the larger number.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id

Json = JSON(none_as_null=True)

#: The kinds of jobs: one trains, the other only looks at what the grader makes of the model.
TRAINING, DRY_RUN = "training", "dry_run"

#: SQLite numbers rows by itself only in a column of type INTEGER.
RowNumber = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Naming every constraint lets migrations alter them on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Project(Base):
    """The unit of ownership: every key, file, job and model belongs to one."""

    __tablename__ = "projects"

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("proj_"))
    name: Mapped[str] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)


class ApiKey(Base):
    """A key of a project; only its SHA-256 is stored, `prefix` is for people."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("key_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    name: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    prefix: Mapped[str] = mapped_column(String(32))
    scopes: Mapped[list[str]] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    revoked_at: Mapped[int | None] = mapped_column(BigInteger)


class File(Base):
    """An uploaded or produced file; its bytes lie in the object store under `object_key`."""

    __tablename__ = "files"
    __table_args__ = (Index(None, "project_id", "created_at", "seq"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("file-"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    filename: Mapped[str] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(String(32))
    bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16), default="processed")
    status_details: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)

    @property
    def live(self) -> bool:
        """Whether the file is neither deleted nor past its expiry."""
        return self.deleted_at is None and (self.expires_at is None or self.expires_at > now())


class Job(Base):
    """A fine-tuning job or a dry run: what the user asked for, where it stands, and who holds it.

    `fence` rises whenever the holder changes; a write under an older one is refused. A dry run,
    told by its `kind`, has a `report` at its end. `plan` is what a worker decides or is told beside
    the method: the rows and samples of a dry run, how a job looks at its first groups.
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


class Checkpoint(Base):
    """Committed weights, usable as a model under `name`; with `has_state` also resumable."""

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
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)


class Outbox(Base):
    """A message to send after commit: a queue wake-up or a webhook."""

    __tablename__ = "outbox"
    __table_args__ = (Index(None, "sent_at", "id"),)

    id: Mapped[int] = mapped_column(RowNumber, primary_key=True, autoincrement=True)
    kind: Mapped[str] = mapped_column(String(16))
    payload: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    sent_at: Mapped[int | None] = mapped_column(BigInteger)

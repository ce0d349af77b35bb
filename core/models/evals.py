"""Evals, their runs and what each run found about each item."""

from typing import Any

from sqlalchemy import BigInteger, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.clock import next_seq, now
from core.ids import new_id
from core.models.base import Base, Json


class Eval(Base):
    """A data source and the criteria that its items are tested with.

    `job_id` names the fine-tuning job whose validation steps are its runs.
    """

    __tablename__ = "evals"
    __table_args__ = (Index(None, "project_id", "created_at", "seq"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True, default=lambda: new_id("eval_"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"))
    name: Mapped[str] = mapped_column(Text)
    data_source_config: Mapped[dict[str, Any]] = mapped_column(Json)
    testing_criteria: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    meta: Mapped[dict[str, str] | None] = mapped_column("metadata", Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    updated_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)


class EvalRun(Base):
    """One pass over a data source; `phase` and `step` say which evaluation of a job it keeps.

    A worker holds it as it holds a job: an owner, a lease, and a fence that rises with each.
    """

    __tablename__ = "eval_runs"
    # Runs of users have no phase, and nulls are never equal: only a job's own are bound by it.
    __table_args__ = (
        Index(None, "eval_id", "created_at", "seq"),
        Index(None, "status"),
        Index(None, "deleted_at"),
        UniqueConstraint("eval_id", "phase", "step"),
    )

    id: Mapped[str] = mapped_column(
        String(64), primary_key=True, default=lambda: new_id("evalrun_")
    )
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    eval_id: Mapped[str] = mapped_column(ForeignKey("evals.id"))
    name: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    phase: Mapped[str | None] = mapped_column(String(32))
    step: Mapped[int | None] = mapped_column(Integer)
    status: Mapped[str] = mapped_column(String(16), default="queued")
    # It may hold every item: only who reads it loads it.
    data_source: Mapped[dict[str, Any]] = mapped_column(Json, deferred=True)
    meta: Mapped[dict[str, str] | None] = mapped_column("metadata", Json)
    result_counts: Mapped[dict[str, int]] = mapped_column(Json, default=dict)
    per_model_usage: Mapped[list[dict[str, Any]]] = mapped_column(Json, default=list)
    per_testing_criteria_results: Mapped[list[dict[str, Any]]] = mapped_column(Json, default=list)
    error: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)
    seq: Mapped[int] = mapped_column(BigInteger, default=next_seq)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))


class EvalItem(Base):
    """What a run found about item `position`; `results` has one entry for each criterion."""

    __tablename__ = "eval_items"
    __table_args__ = (
        Index(None, "run_id", "position", unique=True),
        Index(None, "run_id", "status", "position"),
    )

    id: Mapped[str] = mapped_column(
        String(64), primary_key=True, default=lambda: new_id("outputitem_")
    )
    run_id: Mapped[str] = mapped_column(ForeignKey("eval_runs.id"))
    position: Mapped[int] = mapped_column(Integer)
    status: Mapped[str] = mapped_column(String(16))
    item: Mapped[dict[str, Any]] = mapped_column(Json)
    results: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    sample: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[int] = mapped_column(BigInteger, default=now)

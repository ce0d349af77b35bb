"""Add webhook endpoints and deliveries, searchable samples, clones and proofs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_webhook_endpoints()
    _create_metric_series()
    _create_samples()
    _create_webhook_deliveries()
    _create_metric_points()
    op.add_column("checkpoints", sa.Column("proof", _JSON, nullable=True))
    op.add_column("checkpoints", sa.Column("bytes", sa.BigInteger(), nullable=True))
    op.add_column("checkpoints", sa.Column("merged_status", sa.String(length=16), nullable=True))
    op.add_column("checkpoints", sa.Column("merged_error", sa.Text(), nullable=True))
    op.add_column("checkpoints", sa.Column("merged_at", sa.BigInteger(), nullable=True))
    op.add_column("checkpoints", sa.Column("serving_due_at", sa.Float(precision=53), nullable=True))
    op.add_column(
        "checkpoints",
        sa.Column("serving_attempts", sa.Integer(), server_default="0", nullable=False),
    )
    op.create_index("ix_checkpoints_merged_status", "checkpoints", ["merged_status"], unique=False)
    op.create_index(
        "ix_checkpoints_serving_due_at", "checkpoints", ["serving_due_at"], unique=False
    )
    op.add_column("jobs", sa.Column("running_since", sa.BigInteger(), nullable=True))
    op.add_column(
        "jobs", sa.Column("gpu_seconds", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.add_column("jobs", sa.Column("eval_id", sa.String(length=64), nullable=True))
    op.add_column("jobs", sa.Column("cloned_from", sa.String(length=64), nullable=True))
    op.add_column("rollouts", sa.Column("bytes", sa.BigInteger(), nullable=True))
    op.add_column(
        "rollouts",
        sa.Column("index_state", sa.String(length=16), server_default="waiting", nullable=False),
    )
    op.create_index("ix_rollouts_index_state", "rollouts", ["index_state"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_rollouts_index_state", table_name="rollouts")
    op.drop_column("rollouts", "index_state")
    op.drop_column("rollouts", "bytes")
    op.drop_column("jobs", "cloned_from")
    op.drop_column("jobs", "eval_id")
    op.drop_column("jobs", "gpu_seconds")
    op.drop_column("jobs", "running_since")
    op.drop_index("ix_checkpoints_serving_due_at", table_name="checkpoints")
    op.drop_index("ix_checkpoints_merged_status", table_name="checkpoints")
    op.drop_column("checkpoints", "serving_attempts")
    op.drop_column("checkpoints", "serving_due_at")
    op.drop_column("checkpoints", "merged_at")
    op.drop_column("checkpoints", "merged_error")
    op.drop_column("checkpoints", "merged_status")
    op.drop_column("checkpoints", "bytes")
    op.drop_column("checkpoints", "proof")
    op.drop_table("metric_points")
    op.drop_table("webhook_deliveries")
    op.drop_table("samples")
    op.drop_table("metric_series")
    op.drop_table("webhook_endpoints")


def _create_webhook_endpoints() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("event_types", _JSON, nullable=False),
        sa.Column("secrets", _JSON, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_webhook_endpoints_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_endpoints"),
    )
    op.create_index(
        "ix_webhook_endpoints_project_id", "webhook_endpoints", ["project_id"], unique=False
    )


def _create_metric_series() -> None:
    op.create_table(
        "metric_series",
        sa.Column("id", _ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_metric_series_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_metric_series"),
        sa.UniqueConstraint("job_id", "phase", "name", name="uq_metric_series_job_id_phase_name"),
    )


def _create_samples() -> None:
    op.create_table(
        "samples",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("split", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("group_number", sa.Integer(), nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("reward", sa.Float(precision=53), nullable=True),
        sa.Column("advantage", sa.Float(precision=53), nullable=True),
        sa.Column("failure", sa.String(length=64), nullable=True),
        sa.Column("failed_grader", sa.Text(), nullable=True),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("sub_scores", _JSON, nullable=True),
        sa.Column("preview", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_samples_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
        sa.UniqueConstraint(
            "job_id", "step", "split", "position", name="uq_samples_job_id_step_split_position"
        ),
    )
    op.create_index(
        "ix_samples_job_id_failure_step_split_position",
        "samples",
        ["job_id", "failure", "step", "split", "position"],
        unique=False,
    )
    op.create_index(
        "ix_samples_job_id_reward_step_split_position",
        "samples",
        ["job_id", "reward", "step", "split", "position"],
        unique=False,
    )
    op.create_index(
        "ix_samples_job_id_row_step_split_position",
        "samples",
        ["job_id", "row", "step", "split", "position"],
        unique=False,
    )


def _create_webhook_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("endpoint_id", sa.String(length=64), nullable=False),
        sa.Column("message_id", sa.String(length=64), nullable=False),
        sa.Column("event", _JSON, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("attempts_before", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("give_up_at", sa.BigInteger(), nullable=False),
        sa.Column("last_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_expires_at", sa.Float(precision=53), nullable=True),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["endpoint_id"],
            ["webhook_endpoints.id"],
            name="fk_webhook_deliveries_endpoint_id_webhook_endpoints",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_webhook_deliveries_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.UniqueConstraint(
            "endpoint_id", "message_id", name="uq_webhook_deliveries_endpoint_id_message_id"
        ),
    )
    op.create_index(
        "ix_webhook_deliveries_endpoint_id_created_at_seq",
        "webhook_deliveries",
        ["endpoint_id", "created_at", "seq"],
        unique=False,
    )
    op.create_index(
        "ix_webhook_deliveries_status_next_attempt_at",
        "webhook_deliveries",
        ["status", "next_attempt_at"],
        unique=False,
    )


def _create_metric_points() -> None:
    op.create_table(
        "metric_points",
        sa.Column("series_id", _ROW_NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["series_id"], ["metric_series.id"], name="fk_metric_points_series_id_metric_series"
        ),
        sa.PrimaryKeyConstraint("series_id", "step", name="pk_metric_points"),
        sqlite_with_rowid=False,
    )

"""Add webhook endpoints and deliveries, searchable samples, clones and proofs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    _create_webhook_endpoints()
    _create_samples()
    _create_webhook_deliveries()
    op.add_column("checkpoints", sa.Column("proof", _JSON, nullable=True))
    op.add_column("jobs", sa.Column("eval_id", sa.String(length=64), nullable=True))
    op.add_column("jobs", sa.Column("cloned_from", sa.String(length=64), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "cloned_from")
    op.drop_column("jobs", "eval_id")
    op.drop_column("checkpoints", "proof")
    op.drop_table("webhook_deliveries")
    op.drop_table("samples")
    op.drop_table("webhook_endpoints")


def _create_webhook_endpoints() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("events", _JSON, nullable=False),
        sa.Column("secrets", _JSON, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
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


def _create_samples() -> None:
    op.create_table(
        "samples",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("split", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("reward", sa.Float(precision=53), nullable=True),
        sa.Column("advantage", sa.Float(precision=53), nullable=True),
        sa.Column("failure", sa.String(length=64), nullable=True),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("sub_scores", _JSON, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_samples_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
        sa.UniqueConstraint(
            "job_id", "split", "step", "position", name="uq_samples_job_id_split_step_position"
        ),
    )
    op.create_index("ix_samples_job_id_reward", "samples", ["job_id", "reward"], unique=False)


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
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
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

"""Create the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_projects()
    _create_api_keys()
    _create_files()
    _create_jobs()
    _create_events()
    _create_metrics()
    _create_rollouts()
    _create_checkpoints()
    _create_outbox()


def downgrade() -> None:
    for table in (
        "outbox",
        "checkpoints",
        "rollouts",
        "metrics",
        "events",
        "jobs",
        "files",
        "api_keys",
        "projects",
    ):
        op.drop_table(table)


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
    )


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("prefix", sa.String(length=32), nullable=False),
        sa.Column("scopes", _JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_api_keys_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    op.create_index("ix_api_keys_project_id", "api_keys", ["project_id"])


def _create_files() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("purpose", sa.String(length=32), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("status_details", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_files_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
    )
    op.create_index(
        "ix_files_project_id_created_at_seq", "files", ["project_id", "created_at", "seq"]
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("init_from", sa.Text()),
        sa.Column("method", _JSON, nullable=False),
        sa.Column("hyperparameters", _JSON, nullable=False),
        sa.Column("training_file", sa.String(length=64), nullable=False),
        sa.Column("validation_file", sa.String(length=64)),
        sa.Column("warm_start_file", sa.String(length=64)),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("suffix", sa.String(length=64)),
        sa.Column("metadata", _JSON),
        sa.Column("integrations", _JSON),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("error", _JSON),
        sa.Column("fine_tuned_model", sa.Text()),
        sa.Column("trained_tokens", sa.BigInteger()),
        sa.Column("result_files", _JSON, nullable=False),
        sa.Column("estimated_finish", sa.BigInteger()),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_expires_at", sa.Float(precision=53)),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failed_attempts", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=32)),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("total_steps", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_jobs_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index(
        "ix_jobs_project_id_created_at_seq", "jobs", ["project_id", "created_at", "seq"]
    )
    op.create_index("ix_jobs_status", "jobs", ["status"])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", _ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", _JSON),
        sa.Column("phase", sa.String(length=32)),
        sa.Column("step", sa.Integer()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id_jobs"),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("id", name="uq_events_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job_id_seq", "events", ["job_id", "seq"])


def _create_metrics() -> None:
    op.create_table(
        "metrics",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data", _JSON, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_metrics_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "phase", "step", name="pk_metrics"),
    )


def _create_rollouts() -> None:
    op.create_table(
        "rollouts",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("split", sa.String(length=16), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_rollouts_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "step", "split", name="pk_rollouts"),
    )


def _create_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("object_prefix", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("metrics", _JSON, nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("has_state", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_checkpoints_job_id_jobs"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_checkpoints_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.UniqueConstraint(
            "job_id", "phase", "step", "is_final", name="uq_checkpoints_job_id_phase_step_is_final"
        ),
        sa.UniqueConstraint("name", name="uq_checkpoints_name"),
    )
    op.create_index("ix_checkpoints_project_id", "checkpoints", ["project_id"])


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", _ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("payload", _JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    op.create_index("ix_outbox_sent_at_id", "outbox", ["sent_at", "id"])

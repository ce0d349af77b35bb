"""Add evals with their runs and items."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    _create_evals()
    _create_eval_runs()
    _create_eval_items()


def downgrade() -> None:
    op.drop_table("eval_items")
    op.drop_table("eval_runs")
    op.drop_table("evals")


def _create_evals() -> None:
    op.create_table(
        "evals",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data_source_config", _JSON, nullable=False),
        sa.Column("testing_criteria", _JSON, nullable=False),
        sa.Column("metadata", _JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_evals_job_id_jobs"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_evals_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_evals"),
    )
    op.create_index(
        "ix_evals_project_id_created_at_seq",
        "evals",
        ["project_id", "created_at", "seq"],
        unique=False,
    )


def _create_eval_runs() -> None:
    op.create_table(
        "eval_runs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("eval_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("data_source", _JSON, nullable=False),
        sa.Column("metadata", _JSON, nullable=True),
        sa.Column("result_counts", _JSON, nullable=False),
        sa.Column("per_model_usage", _JSON, nullable=False),
        sa.Column("per_testing_criteria_results", _JSON, nullable=False),
        sa.Column("error", _JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["eval_id"], ["evals.id"], name="fk_eval_runs_eval_id_evals"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_eval_runs_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_eval_runs"),
        sa.UniqueConstraint("eval_id", "phase", "step", name="uq_eval_runs_eval_id_phase_step"),
    )
    op.create_index("ix_eval_runs_deleted_at", "eval_runs", ["deleted_at"], unique=False)
    op.create_index(
        "ix_eval_runs_eval_id_created_at_seq",
        "eval_runs",
        ["eval_id", "created_at", "seq"],
        unique=False,
    )
    op.create_index("ix_eval_runs_status", "eval_runs", ["status"], unique=False)


def _create_eval_items() -> None:
    op.create_table(
        "eval_items",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("item", _JSON, nullable=False),
        sa.Column("results", _JSON, nullable=False),
        sa.Column("sample", _JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["eval_runs.id"], name="fk_eval_items_run_id_eval_runs"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_eval_items"),
    )
    op.create_index(
        "ix_eval_items_run_id_position", "eval_items", ["run_id", "position"], unique=True
    )
    op.create_index(
        "ix_eval_items_run_id_status_position",
        "eval_items",
        ["run_id", "status", "position"],
        unique=False,
    )

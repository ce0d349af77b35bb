"""Let a row of jobs be a dry run: its kind, what it samples, and its report."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    kind = sa.Column("kind", sa.String(16), nullable=False, server_default="training")
    op.add_column("jobs", kind)
    op.add_column("jobs", sa.Column("plan", _JSON, nullable=True))
    op.add_column("jobs", sa.Column("report", _JSON, nullable=True))


def downgrade() -> None:
    # What is left of a dry run would be taken for a fine-tuning job.
    dry_runs = "SELECT id FROM jobs WHERE kind = 'dry_run'"
    for table in ("events", "metrics", "rollouts"):
        op.execute(f"DELETE FROM {table} WHERE job_id IN ({dry_runs})")
    op.execute("DELETE FROM jobs WHERE kind = 'dry_run'")
    # Not in a batch: that drops and renames the table, which rows elsewhere refer to.
    for column in ("report", "plan", "kind"):
        op.drop_column("jobs", column)

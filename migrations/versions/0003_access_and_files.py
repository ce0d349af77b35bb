"""Add uploads in parts, file reports, permissions, limits, the audit log and idempotency."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    _create_file_reports()
    _create_audit_log()
    _create_checkpoint_permissions()
    _create_idempotent_requests()
    _create_uploads()
    _create_upload_parts()
    op.add_column("api_keys", sa.Column("last_used_at", sa.BigInteger(), nullable=True))
    op.add_column("files", sa.Column("inspect_after", sa.BigInteger(), nullable=True))
    op.add_column("projects", sa.Column("limits", _JSON, nullable=True))
    op.add_column("projects", sa.Column("retention", _JSON, nullable=True))
    op.add_column("projects", sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("projects", sa.Column("archived_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("projects", "archived_at")
    op.drop_column("projects", "seq")
    op.drop_column("projects", "retention")
    op.drop_column("projects", "limits")
    op.drop_column("files", "inspect_after")
    op.drop_column("api_keys", "last_used_at")
    op.drop_table("upload_parts")
    op.drop_table("uploads")
    op.drop_table("idempotent_requests")
    op.drop_table("checkpoint_permissions")
    op.drop_table("audit_log")
    op.drop_table("file_reports")


def _create_file_reports() -> None:
    op.create_table(
        "file_reports",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("report", _JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "kind", name="pk_file_reports"),
    )


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=64), nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_id", sa.String(length=255), nullable=True),
        sa.Column("data", _JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_audit_log_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )
    op.create_index(
        "ix_audit_log_project_id_created_at_seq",
        "audit_log",
        ["project_id", "created_at", "seq"],
        unique=False,
    )


def _create_checkpoint_permissions() -> None:
    op.create_table(
        "checkpoint_permissions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("grantee_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["grantee_id"], ["projects.id"], name="fk_checkpoint_permissions_grantee_id_projects"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_checkpoint_permissions_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoint_permissions"),
    )
    op.create_index(
        "ix_checkpoint_permissions_grantee_id",
        "checkpoint_permissions",
        ["grantee_id"],
        unique=False,
    )
    op.create_index(
        "ix_checkpoint_permissions_live",
        "checkpoint_permissions",
        ["model", "grantee_id"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_index(
        "ix_checkpoint_permissions_project_id",
        "checkpoint_permissions",
        ["project_id"],
        unique=False,
    )


def _create_idempotent_requests() -> None:
    op.create_table(
        "idempotent_requests",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_idempotent_requests_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_idempotent_requests"),
        sa.UniqueConstraint("project_id", "key", name="uq_idempotent_requests_project_id_key"),
    )
    op.create_index(
        "ix_idempotent_requests_created_at", "idempotent_requests", ["created_at"], unique=False
    )


def _create_uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("purpose", sa.String(length=32), nullable=False),
        sa.Column("mime_type", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("file_expires_after_s", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("file_id", sa.String(length=64), nullable=True),
        sa.Column("part_ids", _JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_uploads_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
    )
    op.create_index("ix_uploads_project_id", "uploads", ["project_id"], unique=False)
    op.create_index(
        "ix_uploads_status_expires_at", "uploads", ["status", "expires_at"], unique=False
    )


def _create_upload_parts() -> None:
    op.create_table(
        "upload_parts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("upload_id", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name="fk_upload_parts_upload_id_uploads"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_upload_parts"),
    )
    op.create_index("ix_upload_parts_upload_id", "upload_parts", ["upload_id"], unique=False)

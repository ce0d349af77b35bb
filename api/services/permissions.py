"""Which other projects may use a model of this one."""

from typing import Annotated

from fastapi import Depends
from sqlalchemy import or_

from api.pagination import Page, clamp, paginate
from api.tenancy import Tenant
from api.tenant import TenantDep
from core.clock import now
from core.errors import NotFound
from core.models import Checkpoint, CheckpointPermission


def get_model(fine_tuned_model_checkpoint: str, tenant: TenantDep) -> Checkpoint:
    """Return the project's own stored model of this name, also by the id of its job or checkpoint.

    A job's id stands for the model that the job ended with. Raises `NotFound`.
    """
    name = fine_tuned_model_checkpoint
    own = tenant.select(Checkpoint).where(Checkpoint.deleted_at.is_(None))
    of_job = (Checkpoint.job_id == name) & Checkpoint.is_final
    named = or_(Checkpoint.name == name, Checkpoint.id == name, of_job)
    newest = own.where(named).order_by(Checkpoint.created_at.desc(), Checkpoint.step.desc())
    checkpoint = tenant.session.scalar(newest.limit(1))
    if checkpoint is None:
        raise NotFound(
            f"The model '{name}' does not exist in this project. GET /v1/models lists the names"
            " of trained models; the id of a job names the model it ended with.",
            param="fine_tuned_model_checkpoint",
            code="model_not_found",
        )
    return checkpoint


CheckpointDep = Annotated[Checkpoint, Depends(get_model)]


def list_permissions(
    tenant: Tenant,
    model: Checkpoint,
    *,
    after: str | None,
    limit: int | None,
    descending: bool,
    project_id: str | None,
) -> Page[CheckpointPermission]:
    """Return a page of who may use a model."""
    query = tenant.select(CheckpointPermission).where(CheckpointPermission.model == model.name)
    # One that was taken back stays a good cursor: a client may do so with each that it sees.
    cursor = None if after is None else query.where(CheckpointPermission.id == after)
    query = query.where(CheckpointPermission.deleted_at.is_(None))
    if project_id is not None:
        query = query.where(CheckpointPermission.grantee_id == project_id)
    return paginate(
        tenant.session,
        query,
        order=(
            CheckpointPermission.created_at,
            CheckpointPermission.seq,
            CheckpointPermission.id,
        ),
        cursor=cursor,
        limit=clamp(limit, default=10),
        descending=descending,
    )


def take_back(tenant: Tenant, model: Checkpoint, permission_id: str) -> None:
    """End a permission at once; raises `NotFound`."""
    permission = tenant.find(CheckpointPermission, permission_id)
    if permission is None or permission.deleted_at or permission.model != model.name:
        raise NotFound(
            f"No such permission of model '{model.name}': {permission_id}."
            " GET /v1/fine_tuning/checkpoints/{model}/permissions lists them.",
            param="permission_id",
            code="permission_not_found",
        )
    permission.deleted_at = now()
    tenant.session.flush()

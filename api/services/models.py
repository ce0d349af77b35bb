"""What a model name stands for: a base model of the registry, or a trained model that the project
owns or that another one lets it use.
"""

from sqlalchemy import select

from api.errors import Forbidden
from api.services.serving import Target
from api.tenancy import Tenant, Transactions
from core.artifacts import root_of
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.models import Checkpoint, Job
from core.nearest import nearest
from core.permissions import grantees, revoke_all, shared_with, usable_by
from core.registry import Registry
from core.states import TERMINAL
from core.store import ObjectStore

#: Models, of the project and of others each, with which an unknown name is compared.
NEAREST_AMONG = 200


def list_trained(tenant: Tenant) -> list[Checkpoint]:
    """Return the stored models and checkpoints that the project may use, newest first."""
    own = tenant.select(Checkpoint).where(Checkpoint.deleted_at.is_(None))
    found = [*tenant.session.scalars(own), *tenant.session.scalars(shared_with(tenant.project_id))]
    return sorted(found, key=lambda row: (-row.created_at, -row.step, row.id))


def find_trained(tenant: Tenant, name: str) -> Checkpoint | None:
    """Return the stored model or checkpoint of this name that the project may use, or None."""
    return usable_by(tenant.session, tenant.project_id, name)


def get_trained(tenant: Tenant, registry: Registry, name: str) -> Checkpoint:
    """Return the project's stored model of this name; raises `NotFound`."""
    checkpoint = find_trained(tenant, name)
    if checkpoint is None:
        message = f"The model '{name}' does not exist. {way_out(tenant, registry, name)}"
        raise NotFound(message, param="model", code="model_not_found")
    return checkpoint


def delete_trained(
    transactions: Transactions, registry: Registry, store: ObjectStore, name: str
) -> None:
    """Delete all objects of a trained model, then mark its row; when the store fails, nothing is.

    Raises `NotFound`, `Forbidden` for a base model or one of another project, and `InvalidRequest`
    while a job needs it.
    """
    if registry.get(name) is not None:
        raise Forbidden(
            f"The model '{name}' is a base model; only the operator removes it, in models.toml.",
            code="base_model",
        )
    with transactions.begin() as tenant:
        checkpoint = _deletable(tenant, registry, name)
        row_id, root = checkpoint.id, root_of(checkpoint.object_prefix)
    store.delete_prefix(root)
    with transactions.begin() as tenant:
        checkpoint = tenant.session.get_one(Checkpoint, row_id)
        revoke_all(tenant.session, checkpoint)
        checkpoint.deleted_at = now()
        checkpoint.has_state, checkpoint.merged_status = False, None


def _deletable(tenant: Tenant, registry: Registry, name: str) -> Checkpoint:
    checkpoint = get_trained(tenant, registry, name)
    if checkpoint.project_id != tenant.project_id:
        raise Forbidden(
            f"The model '{name}' belongs to another project, which lets this one use it; only its"
            " own project deletes it.",
            code="model_not_owned",
        )
    _refuse_in_use(tenant, checkpoint)
    return checkpoint


def resolve(tenant: Tenant, registry: Registry, name: str) -> Target:
    """Return what serving needs for a base id, an alias or a trained model; raises `NotFound`."""
    base = registry.get(name)
    if base is not None:
        return Target(name=base.id, base=base.id)
    checkpoint = find_trained(tenant, name)
    if checkpoint is None:
        hint = way_out(tenant, registry, name)
        message = f"The model {name} does not exist or you do not have access to it. {hint}"
        raise NotFound(message, code="model_not_found")
    return Target(
        name=name,
        base=base_of(tenant, checkpoint),
        artifact=checkpoint.object_prefix,
        kind=checkpoint.kind,
    )


def base_of(tenant: Tenant, checkpoint: Checkpoint) -> str:
    """Return the id of the base model that a checkpoint was trained from."""
    # Also of another project: whoever may use a model may know what it was trained from.
    return tenant.session.get_one(Job, checkpoint.job_id).model


def way_out(tenant: Tenant, registry: Registry, name: str) -> str:
    """Return the sentence for an unknown name: the nearest known one, or where all are listed."""
    # The name of a trained model holds its base model's, which is not what was meant.
    if name.startswith("ft:"):
        close = nearest(name, _newest_names(tenant))
    else:
        close = registry.close_match(name)
    return f"Did you mean '{close}'?" if close else "GET /v1/models lists them."


def _newest_names(tenant: Tenant) -> list[str]:
    usable = (tenant.select(Checkpoint), shared_with(tenant.project_id))
    names: list[str] = []
    for query in usable:
        newest = query.where(Checkpoint.deleted_at.is_(None)).order_by(Checkpoint.created_at.desc())
        found = newest.with_only_columns(Checkpoint.name).limit(NEAREST_AMONG)
        names += tenant.session.scalars(found)
    return names


def _refuse_in_use(tenant: Tenant, checkpoint: Checkpoint) -> None:
    # Not only in this project: one that may use the model can have a job that starts from it.
    users = Job.project_id.in_(grantees(checkpoint.name)) | (Job.project_id == tenant.project_id)
    needs_it = (Job.id == checkpoint.job_id) | ((Job.init_from == checkpoint.name) & users)
    query = select(Job).where(Job.status.not_in(TERMINAL), needs_it)
    job = tenant.session.scalar(query.limit(1))
    if job is not None:
        own = job.project_id == tenant.project_id
        which = f"job {job.id}" if own else "a job of a project that may use it"
        first = "cancel the job" if own else "take that project's permission back"
        raise InvalidRequest(
            f"The model '{checkpoint.name}' is needed by {which}, which is {job.status};"
            f" {first} or wait for its end, then delete the model.",
            code="model_in_use",
        )

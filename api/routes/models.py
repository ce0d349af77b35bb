"""/v1/models. Names contain ':' and may contain '/', hence the `path` parameters."""

from fastapi import APIRouter

from api.parts import PartsDep
from api.schemas.common import Deleted
from api.schemas.models import ModelList, ModelObject
from api.services import models
from api.tenant import TenantDep, TransactionsDep

router = APIRouter(prefix="/v1/models")


@router.get("")
def list_models(tenant: TenantDep, parts: PartsDep) -> ModelList:
    """List the base models and the project's trained models and checkpoints."""
    owner = parts.settings.organization_id
    bases = [ModelObject.of_base(base) for base in parts.registry.all()]
    trained = models.list_trained(tenant)
    shown = [ModelObject.of_trained(row, organization_id=owner) for row in trained]
    return ModelList(data=[*bases, *shown])


@router.get("/{model:path}")
def retrieve_model(model: str, tenant: TenantDep, parts: PartsDep) -> ModelObject:
    """Show one model."""
    base = parts.registry.get(model)
    if base is not None:
        return ModelObject.of_base(base)
    row = models.get_trained(tenant, parts.registry, model)
    return ModelObject.of_trained(row, organization_id=parts.settings.organization_id)


@router.delete("/{model:path}")
def delete_model(model: str, transactions: TransactionsDep, parts: PartsDep) -> Deleted:
    """Delete a trained model or checkpoint."""
    models.delete_trained(transactions, parts.registry, parts.store, model)
    return Deleted(id=model, object="model")

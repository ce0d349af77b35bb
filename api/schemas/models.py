"""Models as OpenAI shows them."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from core import registry
from core.models import Checkpoint


class ModelObject(BaseModel):
    """A base model, a trained model or a checkpoint; `created` is in unix seconds."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str

    @classmethod
    def of_base(cls, base: registry.BaseModel) -> "ModelObject":
        """Show a base model."""
        return cls(id=base.id, created=base.created, owned_by=base.owned_by)

    @classmethod
    def of_trained(cls, row: Checkpoint, *, organization_id: str) -> "ModelObject":
        """Show a trained model or checkpoint."""
        return cls(id=row.name, created=row.created_at, owned_by=organization_id)


class ModelList(BaseModel):
    """Every model; this list has no pages."""

    object: Literal["list"] = "list"
    data: Sequence[ModelObject]

"""Evals: the bodies that create and change one, and the object that OpenAI's clients read."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from api.schemas.common import ApiObject, RequestBody
from api.schemas.jobs import Metadata
from core.evals import SAMPLE_SCHEMA, custom_config, read_criterion
from core.models import Eval
from graders.masking import masked
from graders.schema_rules import SchemaError, check_schema

Name = Annotated[str, Field(min_length=1, max_length=1000)]
#: A criterion of a body, as it is kept: the normalised grader with a new id.
Criterion = Annotated[dict[str, Any], AfterValidator(read_criterion)]


class DataSourceConfig(RequestBody):
    """What the items of an eval look like.

    `schema` is how an eval shows the schemas of item and sample; it is taken in place of
    `item_schema`, so that an exported eval can be sent as it is.
    """

    type: Literal["custom", "logs", "stored_completions"]
    item_schema: dict[str, Any] | None = None
    include_sample_schema: bool | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    metadata: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.type != "custom":
            if self.item_schema is not None or self.include_sample_schema is not None:
                raise ValueError("only a custom data source has an item_schema of its own")
            return self
        if self.item_schema is not None and self.schema_ is not None:
            raise ValueError("item_schema and schema say the same; give one of them")
        if self.metadata is not None:
            raise ValueError("metadata here selects logs; put the eval's own beside its name")
        document = self.items()
        if document is None:
            raise ValueError("a custom data source needs an item_schema")
        try:
            check_schema(document)
        except SchemaError as error:
            raise ValueError(f"the item_schema cannot be used: {error}") from error
        return self

    def items(self) -> dict[str, Any] | None:
        """Return the schema of an item; None where any object is one."""
        if self.type != "custom" or self.item_schema is not None:
            return self.item_schema
        exported = self._exported().get("item")
        return exported if isinstance(exported, dict) else None

    def _exported(self) -> dict[str, Any]:
        properties = (self.schema_ or {}).get("properties")
        return properties if isinstance(properties, dict) else {}

    def kept(self) -> dict[str, Any]:
        """Return it as it is shown, and kept."""
        if self.type != "custom":
            properties = {"item": {"type": "object"}, "sample": SAMPLE_SCHEMA}
            schema = {"type": "object", "properties": properties, "required": ["item", "sample"]}
            return {"type": self.type, "metadata": self.metadata, "schema": schema}
        with_sample = self.include_sample_schema or "sample" in self._exported()
        return custom_config(self.items() or {}, with_sample=bool(with_sample))


class CreateEval(RequestBody):
    """The body of `POST /v1/evals`."""

    name: Name | None = None
    metadata: Metadata = None
    data_source_config: DataSourceConfig
    testing_criteria: list[Criterion]


class UpdateEval(RequestBody):
    """The body of `POST /v1/evals/{id}`; what is left out stays as it is."""

    name: Name | None = None
    metadata: Metadata = None


class EvalObject(ApiObject):
    """An eval. `job_id`, ours, names the fine-tuning job that it belongs to."""

    object: Literal["eval"] = "eval"
    name: str
    data_source_config: dict[str, Any]
    testing_criteria: list[dict[str, Any]]
    created_at: int
    updated_at: int
    metadata: dict[str, str] | None
    job_id: str | None

    @classmethod
    def of(cls, row: Eval) -> "EvalObject":
        """Show one database row, without the secrets of its graders."""
        return cls(
            id=row.id,
            name=row.name,
            data_source_config=row.data_source_config,
            testing_criteria=[masked(each) for each in row.testing_criteria],
            created_at=row.created_at,
            updated_at=row.updated_at,
            metadata=row.meta,
            job_id=row.job_id,
        )


class DeletedEval(BaseModel):
    """The answer to deleting an eval."""

    object: Literal["eval.deleted"] = "eval.deleted"
    deleted: Literal[True] = True
    eval_id: str

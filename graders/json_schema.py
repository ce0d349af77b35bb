"""`json_schema`: 1 when a text is strict JSON and valid for a schema, else 0.

    {"type": "json_schema", "name": "form", "partial_credit": true,
     "schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}

A text that is no JSON scores 0: that is the verdict, not a failure. With `partial_credit`, an
invalid object scores the share of its n required properties that are there and valid; when all
of them are but another rule is broken, it scores n / (n + 1).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from graders import jsontext
from graders.base import Grader, PureGrader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.outcome import Score
from graders.paths import Context, Path
from graders.problems import sentence
from graders.schema_rules import SchemaError, check_schema, ignored_keywords
from graders.schemas import MAX_STEPS, BudgetSpent, Schema
from graders.services import Services
from graders.template import Template, TemplateText, paths_of
from graders.trace import Trace


def _check_schema(document: dict[str, Any]) -> dict[str, Any]:
    try:
        check_schema(document)
    except SchemaError as error:
        problem = SpecProblem("schema", sentence(str(error)), "invalid_schema")
        raise SpecError([problem]) from error
    return document


class JsonSchema(Spec):
    """The spec of a `json_schema` grader."""

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema"), AfterValidator(_check_schema)]
    input: TemplateText = "{{sample.output_text}}"
    partial_credit: bool = False

    @model_validator(mode="after")
    def _partial_credit_has_parts(self) -> Self:
        if self.partial_credit and not self.schema_.get("required"):
            message = "Partial credit needs 'required' properties at the schema's root."
            raise SpecError([SpecProblem("partial_credit", message)])
        return self

    def paths(self) -> frozenset[Path]:
        return paths_of([self.input])

    def warnings(self, *, covered: bool = False) -> list[str]:
        """Keywords are among them that the schema's author may take for rules."""
        found = super().warnings(covered=covered)
        if ignored := ignored_keywords(self.schema_):
            names = ", ".join(ignored)
            found.append(f"{self.name} has keywords in its schema which say nothing here: {names}.")
        return found

    def build(self, services: Services) -> Grader:
        return _JsonSchemaGrader(self)


class _JsonSchemaGrader(PureGrader):
    def __init__(self, spec: JsonSchema) -> None:
        self._input = Template.parse(spec.input)
        self._schema = Schema(spec.schema_, checked=True)
        self._required: list[str] = spec.schema_.get("required", []) if spec.partial_credit else []

    def score(self, context: Context, trace: Trace) -> Score:
        text = self._input.render(context)
        try:
            value = jsontext.parse(text)
        except jsontext.JsonTextError:
            return Score(0.0)
        try:
            return Score(self._share(value, chars=len(text)))
        except BudgetSpent as error:
            detail = f"Checking the schema took more than {MAX_STEPS:,} steps."
            raise GradeError("other_error", detail) from error
        except RecursionError as error:
            detail = "Schema and completion are nested too deeply to check."
            raise GradeError("other_error", detail) from error

    def _share(self, value: Any, *, chars: int) -> float:
        if self._schema.accepts(value, chars=chars):
            return 1.0
        if not self._required or not isinstance(value, dict):
            return 0.0
        valid = sum(
            name in value and self._schema.accepts_property(name, value[name])
            for name in self._required
        )
        count = len(self._required)
        return valid / count if valid < count else count / (count + 1)

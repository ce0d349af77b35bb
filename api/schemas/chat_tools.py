"""Tools and response formats of a chat request; what is in a JSON Schema is left as it is."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from api.schemas.common import RequestBody

#: The most tools that one request may bring, as at OpenAI.
MAX_TOOLS = 128

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


def _stands_alone(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse references to other schemas, which would be ignored: the server fetches nothing."""
    waiting: list[Any] = [schema]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            reference = current.get("$ref", "#")
            if isinstance(reference, str) and not reference.startswith("#"):
                raise ValueError(
                    f"the reference '{reference[:200]}' leads out of the schema; put what it names"
                    " into '$defs' and refer to it as '#/$defs/name'"
                )
            waiting.extend(current.values())
        elif isinstance(current, list):
            waiting.extend(current)
    return schema


Schema = Annotated[dict[str, Any], AfterValidator(_stands_alone)]


class Function(RequestBody):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: Name
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class Tool(RequestBody):
    """A tool. Only functions exist here."""

    type: Literal["function"]
    function: Function


class ChosenFunction(RequestBody):
    """The function that must be called."""

    name: Annotated[str, Field(min_length=1)]


class AllowedTool(RequestBody):
    """One of the tools that may be called, named as in a forced choice."""

    type: Literal["function"]
    function: ChosenFunction


class AllowedTools(RequestBody):
    """The tools among which the model may choose."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[AllowedTool], Field(min_length=1)]


class ToolChoice(RequestBody):
    """A choice in the long form: one function, or some of the tools."""

    type: Literal["function", "allowed_tools"]
    function: ChosenFunction | None = None
    allowed_tools: AllowedTools | None = None

    @model_validator(mode="after")
    def _has_its_block(self) -> Self:
        if getattr(self, self.type) is None:
            raise ValueError(f"type '{self.type}' needs the field '{self.type}'")
        return self

    def names(self) -> list[str]:
        """Return the functions that may be called."""
        if self.function is not None and self.type == "function":
            return [self.function.name]
        assert self.allowed_tools is not None
        return [tool.function.name for tool in self.allowed_tools.tools]


class JsonSchemaFormat(RequestBody):
    """The schema that an answer must have."""

    name: Name
    description: str | None = None
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(RequestBody):
    """The form of the answer; the model is made to keep to it while it writes."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("'json_schema' belongs to type 'json_schema', and only there")
        return self


def check_choice(choice: str | ToolChoice | None, tools: list[Tool] | None) -> None:
    """Raise ValueError unless the choice can be made among the tools."""
    if choice is None or choice == "none":
        return
    if not tools:
        raise ValueError("'tool_choice' needs 'tools'; name at least one or leave it out")
    if isinstance(choice, ToolChoice):
        known = [tool.function.name for tool in tools]
        unknown = [name for name in choice.names() if name not in known]
        if unknown:
            raise ValueError(
                f"'tool_choice' names {', '.join(unknown)}; 'tools' has {', '.join(known)}"
            )

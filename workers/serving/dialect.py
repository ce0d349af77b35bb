"""How a model is told of tools, and how its calls are found in what it writes.

Chat templates that know tools write them in their model's own form, which one of vLLM's parsers
reads back. Other templates drop them silently, so that the tools are put into the conversation here
(see `tool_text`), in the form of Hermes, which is the most widespread one.
"""

from dataclasses import dataclass

from core.registry import BaseModel
from workers.model_files import chat_template

#: The form for templates without one of their own.
HERMES = "hermes"
#: What a template contains that writes calls in a certain form, with the parser that reads it.
_MARKS = (("[TOOL_CALLS]", "mistral"), ("<|python_tag|>", "llama3_json"))
#: Forms that share Hermes' tag but not what stands in it.
_NOT_HERMES = ("<function=", "<arg_key>")


@dataclass(frozen=True)
class Dialect:
    """What a model's chat template knows.

    `parser` is the name of vLLM's parser for its calls, None when nobody has named one that fits;
    then only calls that are forced are understood, for their form does not depend on the model.
    """

    parser: str | None
    knows_tools: bool
    knows_developer: bool


def dialect_of(base: BaseModel) -> Dialect:
    """Return the dialect of a base model, and of everything that is trained from it."""
    template = chat_template(base)
    knows_tools = "tools" in template
    return Dialect(
        parser=base.tool_parser or (_parser(template) if knows_tools else HERMES),
        knows_tools=knows_tools,
        knows_developer="developer" in template,
    )


def _parser(template: str) -> str | None:
    if "<tool_call>" in template and not any(mark in template for mark in _NOT_HERMES):
        return HERMES
    return next((parser for mark, parser in _MARKS if mark in template), None)

"""Every rule that a dataset is checked against, with the way out of breaking it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]
#: What a rule looks at; with `file` and `line` alone a file is JSON Lines or is not.
About: TypeAlias = Literal["file", "line", "row", "preference", "tools", "job"]


@dataclass(frozen=True)
class Rule:
    """Whether breaking the rule refuses the row, what it looks at, and what to do about it."""

    severity: Severity
    about: About
    mend: str


def _rules(about: About, **mends: tuple[Severity, str]) -> dict[str, Rule]:
    return {name: Rule(severity, about, mend) for name, (severity, mend) in mends.items()}


def _error(mend: str) -> tuple[Severity, str]:
    return "error", mend


def _warning(mend: str) -> tuple[Severity, str]:
    return "warning", mend


_FILE = _rules(
    "file",
    empty_file=_error("Write one JSON object per line."),
    not_utf8=_error("Save the file as UTF-8."),
    other_format=_error("Unpack or convert it to JSON Lines, saved as UTF-8."),
    carriage_returns=_error("End every line with a line feed; a carriage return may precede it."),
    bom_stripped=_warning("Save the file as UTF-8 without a byte order mark."),
    blank_lines=_warning("Nothing to do: blank lines are skipped."),
)
_LINE = _rules(
    "line",
    max_line_bytes=_error("Shorten the row or split it; name large images by address."),
    too_many_values=_error("Leave out of the row what neither model nor grader reads."),
    bom_inside=_error("Remove the byte order mark; files were probably joined."),
    invalid_json=_error(
        "Write one complete JSON object per line, names and texts in double quotes, "
        'inner quotes as \\".'
    ),
    not_an_object=_error('Write an object such as {"messages": [...]} on every line.'),
    too_deep=_error("Flatten the row, or put the nested part into a string."),
    duplicate_key=_error("Keep one of the values; no JSON reader can tell which one counts."),
    non_finite_number=_error("Use null, or a number within the range of a double."),
    number_too_large=_error("Write the number as a string."),
    lone_surrogate=_error("Write the character itself, or both halves of its escape."),
    nul_character=_error("Remove the NUL character (\\u0000)."),
)
_ROW = _rules(
    "row",
    messages_required=_error('Give every row "messages": a list with at least one message.'),
    message_not_object=_error('Write a message as {"role": "user", "content": "..."}.'),
    unknown_role=_error("Use developer, system, user, assistant or tool."),
    content_required=_error("Give the message a text as content."),
    invalid_content=_error("Use a text, or a list of parts with a type."),
    invalid_image=_error(
        "Use an http(s) address, or a data: URL with the base64 of a whole PNG, JPEG or WEBP "
        "image of up to 10 MB."
    ),
    too_many_images=_error("Leave out images, or split the row."),
    image_not_in_user=_error("Move the image into a user message."),
    invalid_name=_error("Use a text as name, or leave it out."),
    unknown_message_field=_warning("Remove the field; nothing reads it."),
    last_message_not_user=_error(
        "End the messages with the user's turn; the answer belongs into a field of the row, "
        "which the grader reads as item.<field>, or into the outputs of a preference."
    ),
    empty_prompt=_warning("Write what the model is to answer, or remove the row."),
    answer_without_prompt=_error(
        "Begin the row with another message, or set the weight of the first one to 0."
    ),
    last_message_not_assistant=_error("End the messages with the answer to learn."),
    empty_assistant=_warning("Remove the message if it is not meant to be empty."),
    empty_target=_error(
        "Write the answer to learn; in supervised training, weight 0 leaves a message out."
    ),
    invalid_weight=_error("Use weight 0 or 1, on assistant messages only."),
    nothing_to_learn=_error(
        "Give the answer weight 1 or leave its weight out; a warm start learns the last one only."
    ),
    target_not_text=_error("End the row with an answer in text, without tool calls or refusal."),
    unused_field=_warning("Remove the field if it was meant to have an effect."),
    misleading_field=_warning("Rename or remove the field if it was meant to do something else."),
    duplicate_row=_warning("Remove all but one, or give them different messages."),
)
_PREFERENCE = _rules(
    "preference",
    input_required=_error('Give every row "input": {"messages": [...]}, the prompt.'),
    output_required=_error(
        'Write preferred_output and non_preferred_output as [{"role": "assistant", '
        '"content": "..."}], one message each.'
    ),
    output_not_assistant=_error("Give the output the role assistant."),
    outputs_equal=_error("Make the outputs differ, or remove the row: it prefers nothing."),
)
_TOOLS = _rules(
    "tools",
    invalid_tools=_error(
        'Write a tool as {"type": "function", "function": {"name": "...", "parameters": {...}}}, '
        "each name once."
    ),
    invalid_tool_calls=_error(
        'Write a call as {"id": "...", "type": "function", '
        '"function": {"name": "...", "arguments": "{...}"}}, in an assistant message, '
        "each id once."
    ),
    unknown_tool_call_id=_error("Use the id of a call in an earlier assistant message."),
    unanswered_tool_call=_warning("Add a tool message with the id of the call after it."),
    undeclared_tool=_warning("Add the function to the row's tools."),
)
_JOB = _rules(
    "job",
    missing_field=_error("Add the field to the rows, or change the grader."),
    too_many_tokens=_error("Shorten the row, or lower max_completion_tokens."),
)

RULES: dict[str, Rule] = {**_FILE, **_LINE, **_ROW, **_PREFERENCE, **_TOOLS, **_JOB}

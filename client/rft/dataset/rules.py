"""Every rule that a dataset is checked against, with the way out of breaking it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rule:
    """Whether breaking the rule refuses the row, and what to do about it."""

    severity: Literal["error", "warning"]
    mend: str


def _error(mend: str) -> Rule:
    return Rule("error", mend)


def _warning(mend: str) -> Rule:
    return Rule("warning", mend)


RULES: dict[str, Rule] = {
    # The file
    "empty_file": _error("Write one JSON object per line."),
    "not_utf8": _error("Save the file as UTF-8."),
    "bom_stripped": _warning("Save the file as UTF-8 without a byte order mark."),
    "blank_lines": _warning("Nothing to do: blank lines are skipped."),
    # One line
    "max_line_bytes": _error("Shorten the row or split it."),
    "bom_inside": _error("Remove the byte order mark; files were probably joined."),
    "invalid_json": _error(
        "Write one complete JSON object per line, names and texts in double quotes, "
        'inner quotes as \\".'
    ),
    "not_an_object": _error('Write an object such as {"messages": [...]} on every line.'),
    "too_deep": _error("Flatten the row, or put the nested part into a string."),
    "duplicate_key": _error("Keep one of the values; no JSON reader can tell which one counts."),
    "non_finite_number": _error("Use null, or a number within the range of a double."),
    "number_too_large": _error("Write the number as a string."),
    "lone_surrogate": _error("Write the character itself, or both halves of its escape."),
    "nul_character": _error("Remove the NUL character (\\u0000)."),
    # The conversation
    "messages_required": _error('Give every row "messages": a list with at least one message.'),
    "message_not_object": _error('Write a message as {"role": "user", "content": "..."}.'),
    "unknown_role": _error("Use developer, system, user, assistant or tool."),
    "content_required": _error("Give the message a text as content."),
    "invalid_content": _error("Use a text, or a list of parts with a type."),
    "image_not_in_user": _error("Move the image into a user message."),
    "invalid_name": _error("Use a text as name, or leave it out."),
    "unknown_message_field": _warning("Remove the field; nothing reads it."),
    "last_message_not_user": _error(
        "End the messages with the user's turn and move the answer to a top-level field, "
        "which the grader reads as item.<field>."
    ),
    "last_message_not_assistant": _error("End the messages with the answer to learn."),
    "empty_assistant": _warning("Remove the message if it is not meant to be empty."),
    "empty_target": _error("Write the answer to learn, or give the message weight 0."),
    "invalid_weight": _error("Use weight 0 or 1, on assistant messages only."),
    "nothing_to_learn": _error(
        "Give the answer weight 1 or leave its weight out; a warm start learns the last one only."
    ),
    "target_not_text": _error("End the row with an answer in text, without tool calls or refusal."),
    # Tools
    "invalid_tools": _error(
        'Write a tool as {"type": "function", "function": {"name": "...", "parameters": {...}}}.'
    ),
    "invalid_tool_calls": _error(
        'Write a call as {"id": "...", "type": "function", '
        '"function": {"name": "...", "arguments": "{...}"}}, in an assistant message.'
    ),
    "unknown_tool_call_id": _error("Use the id of a call in an earlier assistant message."),
    "undeclared_tool": _warning("Add the function to the row's tools."),
    # Fields that do nothing
    "unused_field": _warning("Remove the field if it was meant to have an effect."),
}

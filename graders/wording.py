"""What pydantic found wrong with a value, in our own words: the one table of them.

A reason is the end of a sentence that begins with the value's place: "must be …".
"""

import re
from typing import get_args

from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

_ANY_OTHER = "has a value that is not allowed here"

#: The type of pydantic's error → reason; its braces are filled from the error's context.
REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "none_required": "must be null",
    "string_type": "must be a text",
    "string_unicode": "must be a text in Unicode",
    "string_too_short": "must have at least {min_length} character{plural}",
    "string_too_long": "must have at most {max_length} character{plural}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "too_short": "must have at least {min_length} element{plural}, not {actual_length}",
    "too_long": "must have at most {max_length} element{plural}, not {actual_length}",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dataclass_type": "must be an object",
    "invalid_key": "must have texts as names",
    "union_tag_not_found": "must name its {discriminator}",
    "union_tag_invalid": "must have as {discriminator} one of {expected_tags}, not '{tag}'",
    "url_type": "must be an address, as https://example.com/hook",
    "url_parsing": "must be an address, as https://example.com/hook",
    "url_scheme": "must be an address that begins with {expected_schemes}",
    "url_too_long": "must be an address of at most {max_length} characters",
}

#: The errors that pydantic words itself; those of `PydanticCustomError` are worded by us.
_PYDANTICS = frozenset(get_args(ErrorType))
#: Words that JSON spells otherwise, outside of quotation marks.
_JSONS = {"True": "true", "False": "false", "None": "null"}
_PYTHONS = re.compile(r"\b(?:True|False|None)\b(?=(?:[^']*'[^']*')*[^']*$)")
#: What our own validators raise by a `ValueError`; its sentence is ours already.
_OURS = frozenset({"value_error", "assertion_error"})


def reason(detail: ErrorDetails) -> str:
    """Say what is wrong with the value, without the place and without a full stop."""
    context = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in detail.get("ctx", {}).items()
    }
    cause = context.get("error")
    if detail["type"] in _OURS and cause is not None:
        return _bare(str(cause))
    if detail["type"] not in _PYDANTICS:
        return _bare(detail["msg"])
    if detail["type"] not in REASONS:
        return _ANY_OTHER
    if "expected" in context:
        context["expected"] = _in_json(context["expected"])
    count = context.get("min_length", context.get("max_length"))
    return REASONS[detail["type"]].format(**context, plural="" if count == 1 else "s")


def _in_json(expected: str) -> str:
    """Return the values that are allowed as JSON spells them; pydantic spells them as Python."""
    return _PYTHONS.sub(lambda word: _JSONS[word[0]], expected)


def _bare(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")

"""What a judge wrote, brought to a JSON object, or a sentence that says why it cannot be used.

Nothing is guessed: one object, plain or in one fence of Markdown, is read; a number in quotes, two
objects or an object inside prose are not.
"""

import re
from collections.abc import Mapping
from typing import Any

from graders import jsontext

#: What reasoning models without a reasoning parser write before their answer.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)```", re.DOTALL)

#: Where a judge's number may stand.
SCORE_KEYS = ("result", "score")


class ReplyError(ValueError):
    """The reply cannot be used; the message says why, as a clause without a full stop."""


def read_object(text: str) -> Mapping[str, Any]:
    """Read the one JSON object of a reply."""
    text = _THOUGHTS.sub("", text).strip()
    if not text:
        raise ReplyError("the reply is empty")
    fences = _FENCE.findall(text)
    if len(fences) > 1:
        raise ReplyError("the reply holds several fenced blocks")
    try:
        value = jsontext.parse(fences[0] if fences else text)
    except jsontext.JsonTextError as error:
        raise ReplyError(f"the reply is not one JSON object: {error}") from error
    if not isinstance(value, dict):
        raise ReplyError("the reply is JSON but no object")
    return value


def read_number(text: str) -> float:
    """Read the number under `result` or `score`."""
    found = read_object(text)
    given = {key: found[key] for key in SCORE_KEYS if key in found}
    if not given:
        raise ReplyError("the reply has neither 'result' nor 'score'")
    if len(given) > 1 and given["result"] != given["score"]:
        raise ReplyError("the reply has a 'result' and another 'score'")
    [value, *_] = given.values()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplyError(f"the score is {_kind(value)} and not a number")
    return float(value)


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "true or false", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")

"""A quick look at ordinary rows, of which the rules have nothing to say.

It decides how long validation takes and never what it finds: of any row that it does not know, it
says nothing, and the rules look at it.
"""

from typing import Any, NamedTuple

from rft.dataset import quickjson
from rft.dataset.conversation import MISLEADING
from rft.dataset.messages import Kind, is_plain
from rft.dataset.tools import KnownTools

_LAST = {"reinforcement": "user", "supervised": "assistant", "warm_start": "assistant"}


class Plain(NamedTuple):
    """A row without findings: what is said, the strings in its JSON, and whether it needs tools.

    `talk` has the hash that is the row's `fingerprint`.
    """

    talk: tuple[Any, ...]
    strings: int
    tools: bool


def plain(row: dict[str, Any], kind: Kind, known: KnownTools) -> Plain | None:
    """Return what a row is when `check_row` surely yields nothing for it, or None.

    Raises `quickjson.Doubt` like `quickjson.count_strings`.
    """
    messages = row.get("messages")
    if type(messages) is not list or not messages or kind == "preference":
        return None
    if not _ends_plainly(messages[-1], kind) or _begins_with_answer(messages[0], kind):
        return None
    tools = row.get("tools")
    strings, calls = len(row), _Calls(known, tools)
    talk: list[Any] = []
    said: tuple[Any, ...] | None
    for message in messages:
        if is_plain(message):
            talk += message["role"], message["content"]
            strings += 4
            continue
        if _is_weighted(message, kind):
            said = "assistant", message["content"], frozenset((("weight", message["weight"]),))
            strings += 5
        else:
            said = calls.take(message)
            if said is None:
                return None
        talk.append(said)
    if calls.open:
        return None
    if len(row) > 1:
        if tools is not None:
            if not known.right(tools, "/tools"):
                return None
            strings += known.strings(tools, "/tools")
        others = {key: row[key] for key in row if key != "messages" and key != "tools"}
        if others:
            if kind == "supervised" or not MISLEADING.keys().isdisjoint(others):
                return None
            strings += quickjson.count_strings(others) - len(others)
    return Plain(tuple(talk), strings + calls.strings, bool(tools) or calls.strings > 0)


def _ends_plainly(last: Any, kind: Kind) -> bool:
    if is_plain(last):
        return bool(last["role"] == _LAST[kind])
    return _is_weighted(last, kind) and last["weight"] == 1


def _begins_with_answer(first: Any, kind: Kind) -> bool:
    return kind != "reinforcement" and type(first) is dict and first.get("role") == "assistant"


def _is_weighted(message: Any, kind: Kind) -> bool:
    """Whether a message is plain but for the weight of an answer to learn, or to leave out."""
    if kind == "reinforcement" or type(message) is not dict or len(message) != 3:
        return False
    content, weight = message.get("content"), message.get("weight")
    if type(content) is not str or not content or content.isspace():
        return False
    return message.get("role") == "assistant" and type(weight) is int and weight in (0, 1)


class _Calls:
    """Tool calls and their results in one row, as long as nothing is wrong with them."""

    def __init__(self, known: KnownTools, tools: Any) -> None:
        self._known, self._tools = known, tools
        #: The ids of calls that wait for their result.
        self.open: set[str] = set()
        self.strings = 0

    def take(self, message: Any) -> tuple[Any, ...] | None:
        """What a message with calls or a result says, None when the rules must look at it."""
        if type(message) is not dict or len(message) != 3:
            return None
        if message.get("role") == "tool":
            return self._result(message.get("tool_call_id"), message.get("content"))
        calls, content = message.get("tool_calls"), message.get("content", ...)
        if message.get("role") != "assistant" or type(calls) is not list or not calls:
            return None
        if self.open or not (content is None or type(content) is str):
            return None
        said = [self._call(call) for call in calls]
        if None in said:
            return None
        self.strings += 4 + (content is not None)
        return "assistant", content, frozenset((("tool_calls", tuple(said)),))

    def _result(self, call_id: Any, content: Any) -> tuple[Any, ...] | None:
        if type(call_id) is not str or type(content) is not str or call_id not in self.open:
            return None
        self.open.remove(call_id)
        self.strings += 6
        return "tool", content, frozenset((("tool_call_id", call_id),))

    def _call(self, call: Any) -> Any:
        if type(call) is not dict or len(call) != 3 or call.get("type") != "function":
            return None
        call_id, function = call.get("id"), call.get("function")
        if type(call_id) is not str or not call_id or call_id in self.open:
            return None
        if type(function) is not dict or len(function) != 2:
            return None
        name, arguments = function.get("name"), function.get("arguments")
        if type(name) is not str or type(arguments) is not str:
            return None
        if not self._known.declares(self._tools, "/tools", name):
            return None
        if quickjson.decode(arguments.encode("utf-8", "replace")) is None:
            return None
        self.open.add(call_id)
        self.strings += 9
        said = frozenset((("name", name), ("arguments", arguments)))
        return frozenset((("id", call_id), ("type", "function"), ("function", said)))

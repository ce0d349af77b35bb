"""What schemathesis is told about the API: ids of things that are there, and bodies that work.

Random ids and bodies only ever meet "not found" and "invalid"; what is behind that is to be reached
as well. Every other request names what is there, and a sequence of requests begins with the
document's own examples, so that there is something to go on from.
"""

import json
import os
import re
import zlib
from typing import Any

import schemathesis
from schemathesis.core import NOT_SET
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase

#: Placeholder of a path, or field of a body → something that exists.
THERE: dict[str, Any] = json.loads(os.environ["RFT_CONTRACT_IDS"])

#: The ids of the key that schemathesis uses and of its project: without them all else fails.
OWN = json.loads(os.environ["RFT_CONTRACT_OWN"])

#: What a form's example calls `@…` → the file's content.
CONTENT = '{"messages": [{"role": "user", "content": "1+1?"}], "answer": "2"}\n' * 12


@schemathesis.hook
def before_call(_: Any, case: Any, __: Any) -> None:
    """Put what is there into requests that are meant to be right."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    in_sequence = case.meta.phase.name == TestPhase.STATEFUL
    if in_sequence or case.meta.phase.name == TestPhase.EXAMPLES:
        _use_example(case)
    if in_sequence:
        case.query = {}
    for place in (case.path_parameters, case.body):
        for name in list(place) if isinstance(place, dict) else ():
            place[name] = _useful(name, place[name], always=in_sequence)


def _useful(name: str, value: Any, *, always: bool) -> Any:
    """Return an id that is there, in place of the caller's own and of random ones."""
    there = THERE.get(name)
    if there is None or (_is_one(value, there) and value not in OWN):
        return value
    return there if always or value in OWN or zlib.crc32(repr(value).encode()) % 2 else value


def _use_example(case: Any) -> None:
    """Send the body of the document's example, with the fields that a link has told."""
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    media = content.get(case.media_type, {})
    if "example" not in media or case.body is NOT_SET:
        return
    parts = case.body.get("part_ids", ()) if isinstance(case.body, dict) else ()
    case.body = {name: _there(name, value) for name, value in media["example"].items()}
    # What a link tells comes with random ones beside it.
    told = [part for part in parts if part.startswith("part_")]
    if told:
        case.body["part_ids"] = told


def _there(name: str, value: Any) -> Any:
    if isinstance(value, str) and value.startswith("@"):
        return CONTENT
    return len(CONTENT) if name == "bytes" else THERE.get(name, value)


def _is_one(value: Any, there: Any) -> bool:
    """Say whether the value is an id from an earlier answer; those of examples are not."""
    kind = re.match(r"[a-z]+[-_]", str(there))
    return kind is not None and str(value).startswith(kind[0]) and not str(value).endswith("abc123")

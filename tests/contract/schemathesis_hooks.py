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

#: What a form's example calls `@…` → the file's content.
CONTENT = b'{"messages": [{"role": "user", "content": "1+1?"}], "answer": "2"}\n' * 12


@schemathesis.hook
def before_call(_: Any, case: Any, __: Any) -> None:
    """Put what is there into requests that are meant to be right."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if case.meta.phase.name in (TestPhase.EXAMPLES, TestPhase.STATEFUL):
        _use_example(case)
    for place in (case.path_parameters, case.body):
        for name in list(place) if isinstance(place, dict) else ():
            there = THERE.get(name)
            if there is not None and not _is_one(place[name], there):
                place[name] = there if zlib.crc32(repr(place[name]).encode()) % 2 else place[name]


def _use_example(case: Any) -> None:
    """Send the body of the document's example, with the fields that a link has told."""
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    media = content.get(case.media_type, {})
    if "example" not in media or case.body is NOT_SET:
        return
    told = case.body if isinstance(case.body, dict) else {}
    case.body = {name: _there(name, value) for name, value in media["example"].items()}
    if "part_ids" in told:
        case.body["part_ids"] = told["part_ids"]


def _there(name: str, value: Any) -> Any:
    if isinstance(value, str) and value.startswith("@"):
        return CONTENT
    return len(CONTENT) if name == "bytes" else THERE.get(name, value)


def _is_one(value: Any, there: Any) -> bool:
    """Say whether the value is an id already, as one from an earlier answer."""
    kind = re.match(r"[a-z]+[-_]", str(there))
    return kind is not None and str(value).startswith(kind[0])

"""Variables such as `item.answer` or `sample.choices[0].message`, and looking them up.

A variable starts with a namespace, `item` or `sample`, and goes on with `.name`, `[0]` or
`["any key"]`, whose key is a JSON string. `sample.output_json` is parsed from `sample.output_text`
when it is first read.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from graders import jsontext
from graders.errors import GradeError, TemplateError
from graders.group import Group
from graders.trace import Trace

#: What `sample` holds; any other name after `sample.` is refused when the template is parsed.
SAMPLE_FIELDS = ("output_text", "output_json", "output_tools", "choices")

_NAMESPACES = ("item", "sample")
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*) | \[(?P<index>0|[1-9][0-9]{0,8})\]"""
    r""" | \[(?P<key>"(?:[^"\\]|\\.)*")\] | \['(?P<quoted>[^'\\]*)'\]""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[^\W\d][\w-]*")

#: Fields of a row that are looked through for one like a missing one, and the longest of them.
_MOST_FIELDS, _LONGEST_FIELD = 200, 100


class Absent(LookupError):
    """The variable is not there: its step at `position` was looked for in `value`, in vain."""

    def __init__(self, path: "Path", position: int, value: Any) -> None:
        self._path, self._position, self._value = path, position, value
        super().__init__(path)

    @property
    def suggestion(self) -> "Path | None":
        """The nearest variable that is there, if any is near."""
        return self._path.nearest(self._position, self._value)


@dataclass(frozen=True)
class Path:
    """A variable: its namespace and the steps into it (object keys and array indexes)."""

    namespace: str
    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Read a variable without its braces; raises `TemplateError`."""
        head = re.match(r"\w*", text)
        namespace = head.group() if head else ""
        if namespace not in _NAMESPACES:
            raise TemplateError(
                f"variable {text!r} must start with item. or sample., as in item.answer"
            )
        steps = tuple(_steps(text, len(namespace)))
        if not steps:
            raise TemplateError(f"variable {text!r} names no field, as in {namespace}.answer")
        if namespace == "sample" and steps[0] not in SAMPLE_FIELDS:
            raise TemplateError(_unknown_sample_field(text, steps[0]))
        return cls(namespace, steps)

    def __str__(self) -> str:
        return self.namespace + "".join(_written(step) for step in self.steps)

    def find(self, root: Any) -> Any:
        """Follow the steps from `root`, the value of the namespace; raises `Absent`."""
        value = root
        for position, step in enumerate(self.steps):
            if isinstance(step, str):
                if isinstance(value, dict) and step in value:
                    value = value[step]
                    continue
            elif isinstance(value, list) and step < len(value):
                value = value[step]
                continue
            raise Absent(self, position, value)
        return value

    def nearest(self, position: int, value: Any) -> "Path | None":
        """This variable with a field of `value` in place of its step at `position`."""
        step = self.steps[position]
        if not isinstance(step, str) or not isinstance(value, dict):
            return None
        if len(step) > _LONGEST_FIELD:
            return None
        fields = itertools.islice(value, _MOST_FIELDS)
        near = _nearest(step, [f for f in fields if isinstance(f, str)])
        if near is None:
            return None
        return Path(self.namespace, (*self.steps[:position], near, *self.steps[position + 1 :]))


def _nearest(name: str, known: Sequence[str]) -> str | None:
    folded = {one.casefold(): one for one in known if one and len(one) <= _LONGEST_FIELD}
    near = get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def _steps(text: str, start: int) -> Iterator[str | int]:
    at = start
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise TemplateError(
                f"variable {text!r} cannot be read after {text[:at]!r}; "
                'steps are .name, [0] or ["any key"]'
            )
        if match["index"]:
            yield int(match["index"])
        elif match["key"]:
            yield _key(match["key"], text)
        else:
            yield match["name"] or match["quoted"] or ""
        at = match.end()


def _key(quoted: str, text: str) -> str:
    try:
        key: str = jsontext.parse(quoted)
    except jsontext.JsonTextError as error:
        raise TemplateError(f"key {quoted} in variable {text!r} is no JSON string") from error
    return key


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _unknown_sample_field(text: str, step: str | int) -> str:
    near = _nearest(str(step), SAMPLE_FIELDS)
    hint = f"did you mean sample.{near}?" if near else f"known: {', '.join(SAMPLE_FIELDS)}"
    return f"variable {text!r} is not part of a sample; {hint}"


@dataclass(slots=True, eq=False)
class Context:
    """What one grade may read: the sample, the item, and the sample's JSON parsed once.

    `group` is where graders that compare the completions of one prompt meet; a completion that is
    graded alone has none. `on_wait` is called when the grade waits there for the others. `traces`
    gets one entry per grader that ran.
    """

    sample: dict[str, Any]
    item: dict[str, Any]
    group: Group | None = None
    on_wait: Callable[[], None] | None = None
    traces: list[Trace] = field(default_factory=list, init=False)
    _parsed: Any = field(default=..., init=False, repr=False)

    def value(self, path: Path) -> Any:
        """Look a variable up; raises `GradeError` when it is absent or its JSON unreadable."""
        try:
            if path.namespace == "item":
                return path.find(self.item)
            if path.steps[0] == "output_json":
                return path.find({"output_json": self._output_json()})
            return path.find(self.sample)
        except Absent as absent:
            kind = "invalid_variable_error" if path.namespace == "item" else "sample_variable_error"
            hint = f"; did you mean {absent.suggestion}?" if absent.suggestion else "."
            raise GradeError(kind, f"{path} is missing{hint}") from absent

    def _output_json(self) -> Any:
        if "output_json" in self.sample:
            return self.sample["output_json"]
        if self._parsed is ...:
            text = self.value(Path("sample", ("output_text",)))
            if not isinstance(text, str):
                detail = "The completion is not pure JSON: it is no text."
                raise GradeError("sample_parse_error", detail)
            try:
                self._parsed = jsontext.parse(text)
            except jsontext.JsonTextError as error:
                detail = f"The completion is not pure JSON: {error}."
                raise GradeError("sample_parse_error", detail) from error
        return self._parsed

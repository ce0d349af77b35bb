"""Variables such as `item.answer` or `sample.choices[0].message`, and looking them up.

A variable starts with a namespace, `item` or `sample`, and goes on with `.name`, `[0]` or
`["any key"]`. `sample.output_json` is parsed from `sample.output_text` when it is first read.
"""

import re
from collections.abc import Iterator
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
    r"""\.(?P<name>[^\W\d][\w-]*) | \[(?P<index>\d{1,9})\] | \["(?P<key>[^"\]]+)"\]"""
    r"""| \['(?P<quoted>[^'\]]+)'\]""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d][\w-]*")


class Absent(LookupError):
    """The variable is not there; `suggestion` is a close one that is, if any."""

    def __init__(self, suggestion: "Path | None") -> None:
        self.suggestion = suggestion
        super().__init__(suggestion)


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
            raise Absent(self._suggest(position, value))
        return value

    def _suggest(self, position: int, value: Any) -> "Path | None":
        step = self.steps[position]
        if not isinstance(step, str) or not isinstance(value, dict):
            return None
        near = get_close_matches(step, [key for key in value if isinstance(key, str)], n=1)
        if not near:
            return None
        return Path(self.namespace, (*self.steps[:position], near[0], *self.steps[position + 1 :]))


def _steps(text: str, start: int) -> Iterator[str | int]:
    at = start
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise TemplateError(
                f"variable {text!r} cannot be read after {text[:at]!r}; "
                'steps are .name, [0] or ["any key"]'
            )
        index = match["index"]
        yield int(index) if index else match["name"] or match["key"] or match["quoted"]
        at = match.end()


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f'["{step}"]'


def _unknown_sample_field(text: str, step: str | int) -> str:
    near = get_close_matches(str(step), SAMPLE_FIELDS, n=1)
    hint = f"did you mean sample.{near[0]}?" if near else f"known: {', '.join(SAMPLE_FIELDS)}"
    return f"variable {text!r} is not part of a sample; {hint}"


@dataclass
class Context:
    """What one grade may read: the sample, the item, and the sample's JSON parsed once.

    `group` is where graders that compare the completions of one prompt meet; a completion that is
    graded alone has none. `traces` gets one entry per grader that ran.
    """

    sample: dict[str, Any]
    item: dict[str, Any]
    group: Group | None = None
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
            try:
                self._parsed = jsontext.parse(text)
            except jsontext.JsonTextError as error:
                detail = f"The completion is not pure JSON: {error}."
                raise GradeError("sample_parse_error", detail) from error
        return self._parsed

"""Templates: text with `{{item.answer}}` or `{{ sample.output_text }}` in it.

Every variable is replaced once; what it inserts is never read as a template again. A string is
inserted as it is, any other value as compact JSON (`true`, `null`, `[1,2]`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from graders import jsontext
from graders.errors import GradeError, TemplateError
from graders.paths import Context, Path

#: Longest template, in characters.
MAX_CHARS = 65_536
#: Most variables in one template.
MAX_VARIABLES = 256
#: Longest text that a template may render to, in characters.
MAX_RENDERED_CHARS = 4_000_000

#: What the search for the end of a variable stops at; braces inside a quoted key are none.
_KEY_OR_BRACES = re.compile(
    r"""\["(?:[^"\\]|\\.)*"\] | \['[^']*'\] | (?P<end>\}\}) | \{\{""", re.VERBOSE | re.DOTALL
)


@dataclass(frozen=True)
class Template:
    """A parsed template: literal texts and variables, in order."""

    parts: tuple[str | Path, ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        """Read a template; raises `TemplateError` with the column (from 1) of the braces."""
        if len(text) > MAX_CHARS:
            raise TemplateError(f"a template may hold {MAX_CHARS:,} characters, not {len(text):,}")
        parts: list[str | Path] = []
        at = 0
        while (braces := text.find("{{", at)) >= 0:
            if len(parts) >= 2 * MAX_VARIABLES:
                raise TemplateError(f"a template may hold {MAX_VARIABLES} variables, not more")
            parts.append(text[at:braces])
            end = _end_of_variable(text, braces + len("{{"))
            if end is None:
                raise TemplateError(f"'{{{{' at column {braces + 1} is never closed by '}}}}'")
            try:
                parts.append(Path.parse(text[braces + len("{{") : end].strip()))
            except TemplateError as error:
                raise TemplateError(f"{error} (column {braces + 1})") from error
            at = end + len("}}")
        parts.append(text[at:])
        return cls(tuple(part for part in parts if part))

    @property
    def paths(self) -> frozenset[Path]:
        """The variables that the template reads."""
        return frozenset(part for part in self.parts if isinstance(part, Path))

    def render(self, context: Context) -> str:
        """Fill the variables in; raises `GradeError` when one is absent or the text too long."""
        pieces: list[str] = []
        total = 0
        for part in self.parts:
            piece = part if isinstance(part, str) else _text(context, part)
            total += len(piece)
            if total > MAX_RENDERED_CHARS:
                detail = f"A template rendered to more than {MAX_RENDERED_CHARS:,} characters."
                raise GradeError("other_error", detail)
            pieces.append(piece)
        return "".join(pieces)


def _end_of_variable(text: str, start: int) -> int | None:
    """Where the closing braces are; `None` when others open before, or none close."""
    for match in _KEY_OR_BRACES.finditer(text, start):
        if match["end"]:
            return match.start()
        if match.group() == "{{":
            return None
    return None


def _text(context: Context, path: Path) -> str:
    value = context.value(path)
    if isinstance(value, str):
        return value
    try:
        return jsontext.dumps(value)
    except jsontext.JsonTextError as error:
        kind = "invalid_variable_error" if path.namespace == "item" else "sample_variable_error"
        raise GradeError(kind, f"{path} cannot be inserted: {error}.") from error


def _check(text: str) -> str:
    Template.parse(text)
    return text


#: A string field of a grader that is refused unless it parses as a template.
TemplateText = Annotated[str, AfterValidator(_check)]


def paths_of(texts: Sequence[str]) -> frozenset[Path]:
    """The variables that any of these templates reads."""
    return frozenset(path for text in texts for path in Template.parse(text).paths)

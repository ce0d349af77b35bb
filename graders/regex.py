"""`regex`: 1 when a pattern matches the text, else 0. Ours.

    {"type": "regex", "name": "cites", "pattern": "\\\\[(\\\\d+)\\\\]", "match": "search",
     "group": 1, "reference": "{{item.source}}"}

The pattern is fixed, not a template: it is checked once, and no row can change what it means. With
`group` and `reference` the text of that group of the first match must be the reference. The
engine is RE2, whose time is linear in the text.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from graders.base import Grader, PureGrader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.outcome import Score
from graders.paths import Context, Path
from graders.patterns import Pattern, PatternError
from graders.problems import sentence
from graders.services import Services
from graders.template import Template, TemplateText, paths_of
from graders.trace import Trace

#: Most work on one text: its characters, times the instructions of the compiled pattern. Half a
#: second at worst; a pattern of 300 instructions can take a million characters.
MAX_STEPS = 3 * 10**8


class Regex(Spec):
    """The spec of a `regex` grader."""

    type: Literal["regex"]
    input: TemplateText = "{{sample.output_text}}"
    pattern: Annotated[str, Field(min_length=1)]
    match: Literal["search", "full"] = "search"
    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    group: int | str | None = None
    reference: TemplateText | None = None

    @model_validator(mode="after")
    def _can_be_matched(self) -> Self:
        try:
            self.compiled().require_group(self.group)
        except PatternError as error:
            raise SpecError([SpecProblem("pattern", sentence(str(error)))]) from error
        if (self.group is None) != (self.reference is None):
            missing = "group" if self.group is None else "reference"
            message = "group and reference go together: the group's text must be the reference."
            raise SpecError([SpecProblem(missing, message)])
        return self

    def compiled(self) -> Pattern:
        """The pattern with its flags; raises `PatternError`."""
        return Pattern(
            self.pattern,
            ignore_case=self.ignore_case,
            multiline=self.multiline,
            dot_all=self.dot_all,
        )

    def paths(self) -> frozenset[Path]:
        return paths_of([self.input, self.reference or ""])

    def build(self, services: Services) -> Grader:
        return _RegexGrader(self)


class _RegexGrader(PureGrader):
    def __init__(self, spec: Regex) -> None:
        self._input = Template.parse(spec.input)
        self._reference = Template.parse(spec.reference or "")
        self._pattern = spec.compiled()
        self._full = spec.match == "full"
        self._group = spec.group

    def score(self, context: Context, trace: Trace) -> Score:
        text, reference = self._input.render(context), self._reference.render(context)
        longest = MAX_STEPS // self._pattern.size
        if len(text) > longest:
            detail = f"With this pattern a text may hold {longest:,} characters, not {len(text):,}."
            raise GradeError("other_error", detail)
        if self._group is None:
            return Score(float(self._pattern.matches(text, full=self._full)))
        return Score(float(self._pattern.group(text, self._group, full=self._full) == reference))

"""`number`: 1 when the completion says the same number as the reference, else 0. Ours.

    {"type": "number", "name": "total", "reference": "{{item.total}}", "extract": "boxed",
     "relative_tolerance": 0.01}

Numbers are read exactly (see `graders.quantity`) and compared as fractions. A completion that is
no number scores 0: that is the verdict. A reference that is none fails the grade, as the row is to
blame. With `symbolic` both may be formulas, which math-verify compares.
"""

from fractions import Fraction
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from graders.base import Finite, Grader, PureGrader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.outcome import Score
from graders.paths import Context, Path
from graders.quantity.answer import Answer, Items, boxed, read_answer
from graders.quantity.last import last_number
from graders.quantity.literal import Quantity
from graders.services import Services
from graders.symbolic import Symbolic, installed
from graders.template import Template, TemplateText, paths_of
from graders.trace import Trace

Tolerance: TypeAlias = Annotated[Finite, Field(ge=0)]
Percent: TypeAlias = Literal["keep", "fraction", "drop"]


class Number(Spec):
    """The spec of a `number` grader."""

    type: Literal["number"]
    input: TemplateText = "{{sample.output_text}}"
    reference: TemplateText
    extract: Literal["whole", "last", "boxed"] = "whole"
    tolerance: Tolerance = 0.0
    relative_tolerance: Tolerance = 0.0
    percent: Percent = "keep"
    symbolic: bool = False

    @model_validator(mode="after")
    def _can_be_compared(self) -> Self:
        fixed = not Template.parse(self.reference).paths
        if fixed and not self.symbolic and read_answer(self.reference) is None:
            message = f"{_shown(self.reference)} is not a number."
            raise SpecError([SpecProblem("reference", message)])
        if self.symbolic and self.extract == "last":
            message = "The last formula of a text cannot be told; use extract 'boxed' or 'whole'."
            raise SpecError([SpecProblem("symbolic", message)])
        if self.symbolic and not installed():
            message = "math-verify is not installed here; pip install 'rft-service[symbolic]'."
            raise SpecError([SpecProblem("symbolic", message)])
        return self

    def paths(self) -> frozenset[Path]:
        return paths_of([self.input, self.reference])

    def cacheable(self) -> bool:
        return self.symbolic

    def build(self, services: Services) -> Grader:
        comparison = _Comparison(self)
        if self.symbolic:
            return _SymbolicGrader(comparison, services.symbolic)
        return _NumberGrader(comparison)


class _Comparison:
    """What both graders do: read the texts, and compare what numbers they hold."""

    def __init__(self, spec: Number) -> None:
        self._input = Template.parse(spec.input)
        self._reference = Template.parse(spec.reference)
        self._extract = spec.extract
        self._percent = spec.percent
        # As it is written: the float 0.3 is a bit less than 3/10.
        self._tolerance = Fraction(str(spec.tolerance))
        self._relative = Fraction(str(spec.relative_tolerance))

    def texts(self, context: Context) -> tuple[str | None, str]:
        """What is taken from the completion, if anything, and the reference."""
        text, reference = self._input.render(context), self._reference.render(context)
        if self._extract == "boxed":
            return boxed(text), reference
        return last_number(text) if self._extract == "last" else text, reference

    def equal(self, answer: Answer, reference: Answer) -> bool | None:
        """Whether the answer says the reference; `None` when the reference has no reading."""
        if not isinstance(reference, Items):
            return not isinstance(answer, Items) and self._same(answer, reference)
        wanted = reference.settled()
        if wanted is None:
            return None
        if not isinstance(answer, Items) or answer.brackets != reference.brackets:
            return False
        return answer.says(wanted, self._same)

    def _same(self, answer: Quantity, reference: Quantity) -> bool:
        currencies = {answer.currency, reference.currency} - {None}
        if len(currencies) > 1 or answer.infinite != reference.infinite:
            return False
        if self._percent == "keep" and answer.percent != reference.percent:
            return False
        if reference.infinite:
            return True
        got, wanted = self._value(answer), self._value(reference)
        return abs(got - wanted) <= max(self._tolerance, self._relative * abs(wanted))

    def _value(self, quantity: Quantity) -> Fraction:
        return quantity.value / (100 if quantity.percent and self._percent == "fraction" else 1)


class _NumberGrader(PureGrader):
    def __init__(self, comparison: _Comparison) -> None:
        self._comparison = comparison

    def score(self, context: Context, trace: Trace) -> Score:
        text, reference = self._comparison.texts(context)
        wanted = read_answer(reference)
        answer = read_answer(text) if text is not None else None
        if wanted is None:
            raise _bad_reference(reference)
        if answer is None:
            return Score(0.0)
        equal = self._comparison.equal(answer, wanted)
        if equal is None:
            raise _bad_reference(reference)
        return Score(float(equal))


class _SymbolicGrader(Grader):
    def __init__(self, comparison: _Comparison, symbolic: Symbolic) -> None:
        self._comparison = comparison
        self._symbolic = symbolic
        self.concurrency = symbolic.size

    async def grade(self, context: Context, trace: Trace) -> Score:
        text, reference = self._comparison.texts(context)
        wanted = read_answer(reference)
        answer = read_answer(text) if text is not None else None
        equal = self._comparison.equal(answer, wanted) if answer and wanted else None
        if equal is None:
            equal = await self._symbolic.equal(text or "", reference)
        if equal is None:
            raise _bad_reference(reference)
        return Score(float(equal))


def _bad_reference(reference: str) -> GradeError:
    return GradeError(
        "invalid_reference_error", f"The reference {_shown(reference)} is not a number."
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:99]}…")

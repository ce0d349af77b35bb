"""`string_check`: compare two texts; 1 when the operation holds, else 0.

`eq` and `ne` compare exactly, code point by code point; `like` holds when the input contains the
reference; `ilike` does so after Unicode case folding (`str.casefold`, so `ß` matches `SS`).
`casefold` knows no language: `İ` folds to an `i` with a dot above, and `ı` stays as it is. There is
no trimming and there are no wildcards. `normalize` is ours: it brings both texts to one Unicode
form first.

    {"type": "string_check", "name": "exact", "operation": "eq",
     "input": "{{sample.output_text}}", "reference": "{{item.answer}}"}
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from graders.base import Grader, PureGrader, Spec
from graders.outcome import Score
from graders.paths import Context, Path
from graders.services import Services
from graders.template import Template, TemplateText, paths_of
from graders.trace import Trace
from graders.unicode import normalized

_HOLDS: dict[str, Callable[[str, str], bool]] = {
    "eq": lambda text, reference: text == reference,
    "ne": lambda text, reference: text != reference,
    "like": lambda text, reference: reference in text,
    "ilike": lambda text, reference: reference.casefold() in text.casefold(),
}


def holds(operation: str, text: str, reference: str) -> bool:
    """Whether an operation holds between two texts as they are."""
    return _HOLDS[operation](text, reference)


# Outcomes are never changed, so two will do.
HOLDS, FAILS = Score(1.0), Score(0.0)


def _canonical(operation: Any) -> Any:
    # OpenAI's guide calls `ne` "neq" in its prose, so users' graders hold both.
    return "ne" if operation == "neq" else operation


class StringCheck(Spec):
    """The spec of a `string_check` grader."""

    type: Literal["string_check"]
    input: TemplateText
    reference: TemplateText
    operation: Annotated[Literal["eq", "ne", "like", "ilike"], BeforeValidator(_canonical)]
    normalize: Literal["nfc", "nfkc"] | None = None

    @property
    def unicode_form(self) -> Literal["NFC", "NFKC"] | None:
        """The form that both texts are brought to, by its name in `unicodedata`."""
        if self.normalize is None:
            return None
        return "NFC" if self.normalize == "nfc" else "NFKC"

    def paths(self) -> frozenset[Path]:
        return paths_of([self.input, self.reference])

    def build(self, services: Services) -> Grader:
        return _StringCheckGrader(self)


class _StringCheckGrader(PureGrader):
    def __init__(self, spec: StringCheck) -> None:
        self._input = Template.parse(spec.input)
        self._reference = Template.parse(spec.reference)
        self._holds = _HOLDS[spec.operation]
        self._form = spec.unicode_form

    def score(self, context: Context, trace: Trace) -> Score:
        text, reference = self._input.render(context), self._reference.render(context)
        if self._form:
            text, reference = normalized(self._form, text), normalized(self._form, reference)
        return HOLDS if self._holds(text, reference) else FAILS

"""Why a comparison failed that nearly held: hints for the reports, which never change a score."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from graders.base import Spec
from graders.errors import GradeError
from graders.multi import Multi
from graders.paths import Context
from graders.string_check import StringCheck, holds
from graders.template import Template
from graders.unicode import normalized

#: Longest text that is looked at, in characters.
MAX_CHARS = 20_000

_Change: TypeAlias = Callable[[str], str]

_FENCE = re.compile(r"\s*```[^\n`]*\n(.*?)\n?\s*```\s*", re.DOTALL)
_QUOTES = ('""', "''", "``", "“”", "‘’", "„“", "«»", "「」")
_STOPS = ".!?。！？"

#: What two texts may differ by, and what takes the difference away; the milder ones first.
_CHANGES: dict[str, _Change] = {
    "Unicode normalisation (NFC)": lambda text: normalized("NFC", text),
    "Unicode normalisation (NFKC)": lambda text: normalized("NFKC", text),
    "upper and lower case": str.casefold,
    "white space": lambda text: " ".join(text.split()),
    "surrounding quotes": lambda text: _unquoted(text),
    "a markdown fence": lambda text: _unfenced(text),
    "a full stop": lambda text: text.rstrip().rstrip(_STOPS),
}
_UNICODE = [name for name in _CHANGES if name.startswith("Unicode")]
#: Most differences at a time; beyond that "differs only by" says little.
_MOST = 3


def unicode_hint(text: str, reference: str) -> str | None:
    """`differs only by Unicode normalisation (…)`, where that is all; else `None`."""
    if text == reference or max(len(text), len(reference)) > MAX_CHARS:
        return None
    found = _differences(text, reference, "eq", _UNICODE, most=1)
    return f"differs only by {found}" if found else None


def hints(spec: Spec, sample: dict[str, Any], item: dict[str, Any]) -> list[str]:
    """Sentences about the comparisons of a grader that fail for little; often none.

    Looks at `string_check` with `eq`, `like` and `ilike`, also inside of a `multi`. Arguments are
    those of `Engine.grade`; a sample that cannot be graded gives no hint.
    """
    context = Context(sample, item)
    return [hint for name, check in _checks(spec) if (hint := _hint(name, check, context))]


def _checks(spec: Spec) -> Iterator[tuple[str, StringCheck]]:
    children = spec.graders.items() if isinstance(spec, Multi) else [(spec.name, spec)]
    for name, child in children:
        if isinstance(child, StringCheck) and child.operation != "ne":
            yield name, child


def _hint(name: str, check: StringCheck, context: Context) -> str | None:
    try:
        text = Template.parse(check.input).render(context)
        reference = Template.parse(check.reference).render(context)
        if max(len(text), len(reference)) > MAX_CHARS:
            return None
        form = check.unicode_form
        if form:
            text, reference = normalized(form, text), normalized(form, reference)
        if holds(check.operation, text, reference):
            return None
        found = _differences(text, reference, check.operation, list(_CHANGES), most=_MOST)
    except GradeError:
        return None
    if found is None:
        return None
    verb = "differs from" if check.operation == "eq" else "does not contain"
    return f"{name}: the input {verb} the reference only by {found}."


def _differences(
    text: str, reference: str, operation: str, names: list[str], *, most: int
) -> str | None:
    """The fewest changes after which the operation holds, in words."""
    for count in range(1, most + 1):
        for chosen in itertools.combinations(names, count):
            try:
                changed = _changed(text, chosen), _changed(reference, chosen)
            except GradeError:
                # A text that cannot be brought to a Unicode form does not differ by it.
                continue
            if holds(operation, *changed):
                return " and ".join(chosen)
    return None


def _changed(text: str, names: tuple[str, ...]) -> str:
    # From the outside in: what is in a fence may be in quotes.
    for name in reversed(names):
        text = _CHANGES[name](text)
    return text


def _unquoted(text: str) -> str:
    stripped = text.strip()
    quoted = len(stripped) > 1 and stripped[0] + stripped[-1] in _QUOTES
    return stripped[1:-1] if quoted else text


def _unfenced(text: str) -> str:
    fenced = _FENCE.fullmatch(text)
    return fenced[1] if fenced else text

"""`multi`: several graders and a formula over their scores.

    {"type": "multi", "name": "reward",
     "graders": {"exact": {…}, "form": {…}},
     "calculate_output": "0.8 * exact + 0.2 * form"}

`graders` may also come as a list or as one grader; both are turned into the map, keyed by name.
Children are graded concurrently. One child that fails fails the whole (what did score is kept in
`sub_scores`), and one that abstains makes the whole abstain.
"""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from graders.base import Grader, PureGrader, Spec, given
from graders.errors import FormulaError, SpecError, SpecProblem
from graders.formula import Formula
from graders.outcome import Abstain, Failure, Note, Outcome, Score
from graders.paths import Context, Path
from graders.problems import explain, nested, sentence, spec_class
from graders.registry import SINGLE_GRADERS
from graders.running import Runner
from graders.services import Services
from graders.trace import Trace

#: Most graders in one `multi`.
MAX_CHILDREN = 50

_SHAPE = '"graders" must map names to graders, as in {"exact": {"type": "string_check", …}}'


def _as_map(raw: Any) -> dict[str, Any]:
    """Bring the list form and the single form to the map."""
    if isinstance(raw, dict) and isinstance(raw.get("type"), str):
        raw = [raw]
    if isinstance(raw, list):
        raw = _keyed_by_name(raw)
    if not isinstance(raw, dict) or not raw:
        raise SpecError([SpecProblem("graders", f"{_SHAPE}.")])
    if len(raw) > MAX_CHILDREN:
        message = f"A multi grader may hold {MAX_CHILDREN} graders, not {len(raw)}."
        raise SpecError([SpecProblem("graders", message)])
    return raw


def _children(graders: Any) -> dict[str, Spec]:
    """Parse the graders of any form; every problem of every one is in the `SpecError`."""
    raw = _as_map(graders)
    children: dict[str, Spec] = {}
    problems: list[SpecProblem] = []
    for key, child in raw.items():
        try:
            children[key] = _child(key, child)
        except SpecError as error:
            problems.extend(error.problems)
    if problems:
        raise SpecError(problems)
    return children


def _keyed_by_name(children: list[Any]) -> dict[str, Any]:
    keyed: dict[str, Any] = {}
    for child in children:
        name = child.get("name") if isinstance(child, dict) else None
        if not isinstance(name, str) or name in keyed:
            message = f"{_SHAPE}; in a list every grader needs a 'name' of its own."
            raise SpecError([SpecProblem("graders", message)])
        keyed[name] = child
    return keyed


def _child(key: str, raw: Any) -> Spec:
    param = f"graders.{key}"
    if not key.isascii() or not key.isidentifier():
        message = f"Grader key {key!r} must be letters, digits and _ for a formula to name it."
        raise SpecError([SpecProblem(param, message)])
    if isinstance(raw, dict) and raw.get("type") == "multi":
        raise SpecError([SpecProblem(param, "A multi grader cannot hold another multi grader.")])
    if not isinstance(raw, dict):
        raise SpecError([SpecProblem(param, f"{_SHAPE}; '{key}' is not a grader.")])
    found = spec_class(raw, SINGLE_GRADERS, param=param)
    try:
        return found.model_validate(given(raw))
    except ValidationError as error:
        raise SpecError(nested(SpecError(explain(error, found)), param)) from error


def _formula_problems(raw: dict[str, Any]) -> list[SpecProblem]:
    """What is wrong with the formula itself, and with its names where the graders have names."""
    text = raw.get("calculate_output")
    if not isinstance(text, str) or not text:
        return []  # the field says so
    try:
        graders = _as_map(raw.get("graders")).keys()
        unknown = sorted(Formula.parse(text).names - graders)
    except SpecError:
        return []  # the field `graders` says so
    except FormulaError as error:
        return [SpecProblem("calculate_output", sentence(str(error)), "formula_parse_error")]
    if not unknown:
        return []
    message = f"The formula names {', '.join(unknown)}, but the graders are {', '.join(graders)}."
    return [SpecProblem("calculate_output", message, "formula_parse_error")]


class Multi(Spec):
    """The spec of a `multi` grader."""

    type: Literal["multi"]
    graders: Annotated[dict[str, SerializeAsAny[Spec]], BeforeValidator(_children)]
    calculate_output: Annotated[str, Field(min_length=1)]

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Check the formula beside fields that are wrong too, so that nothing is told later."""
        try:
            spec, problems = handler(raw), []
        except ValidationError as error:
            spec, problems = None, explain(error, cls)
        problems += _formula_problems(raw)
        if spec is None or problems:
            raise SpecError(problems)
        return spec

    def paths(self) -> frozenset[Path]:
        return frozenset(path for child in self.graders.values() for path in child.paths())

    def warnings(self, *, covered: bool = False) -> list[str]:
        """The children's warnings, and the first corner of scores where the formula fails."""
        covered = covered or self.invalid_grade is not None
        children = self.graders.values()
        found = [text for child in children for text in child.warnings(covered=covered)]
        formula = Formula.parse(self.calculate_output)
        for corner in _corners(sorted(formula.names)):
            try:
                formula.evaluate(corner)
            except FormulaError as error:
                shown = ", ".join(f"{name}={value:g}" for name, value in corner.items())
                found.append(f"calculate_output fails where {shown}: {error}.")
                break
        return found

    def build(self, services: Services) -> Grader:
        children = [Runner(child, services, key) for key, child in self.graders.items()]
        parts = _Parts(self, children)
        return _PureMulti(parts) if all(c.pure for c in children) else _MultiGrader(parts)


def _corners(names: list[str]) -> Iterator[dict[str, float]]:
    """The scores at which formulas break: every mix of 0 and 1, or the two ends for many names."""
    if len(names) > 8:
        return (dict.fromkeys(names, score) for score in (0.0, 1.0))
    mixes = itertools.product((0.0, 1.0), repeat=len(names))
    return (dict(zip(names, mix, strict=True)) for mix in mixes)


class _Parts:
    """The children of a multi grader, and what their outcomes come to."""

    def __init__(self, spec: Multi, children: list[Runner]) -> None:
        self.children = children
        self._formula = Formula.parse(spec.calculate_output)

    def combine(self, outcomes: list[Outcome]) -> Outcome:
        by_key = {child.name: o for child, o in zip(self.children, outcomes, strict=True)}
        scores = {key: o.value for key, o in by_key.items() if isinstance(o, Score)}
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                return Failure(outcome.kind, outcome.detail, outcome.grader, scores)
        for key, outcome in by_key.items():
            if isinstance(outcome, Abstain):
                return Abstain(f"{key}: {outcome.reason}")
        notes = tuple(note for o in outcomes if isinstance(o, Score) for note in o.notes)
        return self._combined(scores, notes)

    def _combined(self, scores: dict[str, float], notes: tuple[Note, ...]) -> Outcome:
        try:
            return Score(self._formula.evaluate(scores), scores, notes)
        except FormulaError as error:
            return Failure("formula_runtime", f"calculate_output: {error}.", None, scores)


class _PureMulti(PureGrader):
    """A multi grader whose children only compute: so does the whole."""

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts

    def score(self, context: Context, trace: Trace) -> Outcome:
        return self._parts.combine([child.score(context) for child in self._parts.children])


class _MultiGrader(Grader):
    #: Every child has bounds of its own: one that is slow must not hold the turn of the others.
    takes_turns = False

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        children = self._parts.children
        done = {child: child.score(context) for child in children if child.instant}
        waiting = [child for child in children if child not in done]
        outcomes = await asyncio.gather(*(child.run(context) for child in waiting))
        done |= zip(waiting, outcomes, strict=True)
        return self._parts.combine([done[child] for child in children])

    async def close(self) -> None:
        for child in self._parts.children:
            await child.close()

"""Testing criteria of evals: graders with an id, a threshold, and a verdict.

A criterion is kept as the normalised JSON of its grader with an `id` of the form `name-uuid`. It
passes where its score reaches `pass_threshold`; what a criterion leaves out is filled in:

    score_model         the middle of its range
    python, endpoint    0.5
    everything else     1, full marks
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graders.base import Spec
from graders.errors import SpecError, SpecProblem
from graders.multi import MAX_CHILDREN
from graders.spec import parse_grader

#: Most criteria of one eval.
MAX_CRITERIA = MAX_CHILDREN
#: Threshold of graders that leave the score's range to their author.
HALF = 0.5
#: Scores are sums and quotients of floats: one this close to the threshold reaches it.
EPSILON = 1e-9


#: What a sample holds, for the schema that an eval shows.
SAMPLE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "output_text": {"type": "string"},
        "output_json": {},
        "output_tools": {"type": "array", "items": {"type": "object"}},
        "choices": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["output_text"],
}


class GraderPart(NamedTuple):
    """One grader process of a run: its grader, and which criterion each of its scores is for.

    `keys` maps the name that a score is reported under to the criterion's id; the empty name
    stands for the score of the whole.
    """

    grader: dict[str, Any]
    keys: dict[str, str]


def read_criterion(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a criterion as it is kept, with a new id; raises `SpecError` about its grader.

    An `id` in it is dropped: it comes from an eval that was exported elsewhere.
    """
    spec = parse_grader({name: value for name, value in raw.items() if name != "id"})
    if compares(spec):
        message = (
            "relative_model compares completions of one prompt, and an eval has one for each item;"
            " use score_model."
        )
        raise SpecError([SpecProblem("type", message)])
    if spec.type == "text_similarity" and spec.pass_threshold is None:
        message = "text_similarity needs a pass_threshold in an eval, as in 0.8."
        raise SpecError([SpecProblem("pass_threshold", message)])
    return criterion_of(spec)


def compares(spec: Spec) -> bool:
    """Return whether a grader needs several completions of one prompt."""
    children = getattr(spec, "graders", {}).values()
    return spec.type == "relative_model" or any(compares(child) for child in children)


def criterion_of(spec: Spec) -> dict[str, Any]:
    """Return the criterion that a grader makes, with a new id."""
    wire = spec.wire()
    if spec.type in _SCORED:
        wire["pass_threshold"] = threshold(wire)
    return {**wire, "id": f"{spec.name}-{uuid.uuid4()}"}


#: Graders with more verdicts than right and wrong: their threshold is shown.
_SCORED = frozenset({"score_model", "python", "endpoint"})


def grader_of(criterion: Mapping[str, Any]) -> dict[str, Any]:
    """Return the grader of a criterion."""
    return {name: value for name, value in criterion.items() if name != "id"}


def threshold(criterion: Mapping[str, Any]) -> float:
    """Return the score from which on a criterion passes."""
    given = criterion.get("pass_threshold")
    if given is not None:
        return float(given)
    if criterion["type"] not in _SCORED:
        return 1.0
    bounds = criterion.get("range")
    if bounds is None:
        return HALF
    return (float(bounds[0]) + float(bounds[1])) / 2


def passes(criterion: Mapping[str, Any], score: float) -> bool:
    """Return whether a score reaches the criterion's threshold."""
    return score >= threshold(criterion) - EPSILON


def grader_parts(criteria: Sequence[Mapping[str, Any]]) -> list[GraderPart]:
    """Return the grader processes that the criteria need: one, and one for each `multi`.

    Several graders become the children of one `multi`, whose formula nobody reads: so they are
    graded side by side, and each has a score or a failure of its own.
    """
    parts = [
        GraderPart(grader_of(each), {"": each["id"]})
        for each in criteria
        if each["type"] == "multi"
    ]
    single = [each for each in criteria if each["type"] != "multi"]
    if len(single) == 1:
        parts.append(GraderPart(grader_of(single[0]), {"": single[0]["id"]}))
    elif single:
        children = {f"c{n}": each for n, each in enumerate(single)}
        together = {
            "type": "multi",
            "name": "testing_criteria",
            "graders": {key: grader_of(each) for key, each in children.items()},
            "calculate_output": "c0",
        }
        parts.append(GraderPart(together, {key: each["id"] for key, each in children.items()}))
    return parts


def custom_config(item_schema: dict[str, Any], *, with_sample: bool) -> dict[str, Any]:
    """Return a custom data source as it is shown: one schema of item and sample."""
    properties = {"item": item_schema, **({"sample": SAMPLE_SCHEMA} if with_sample else {})}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "custom", "schema": schema}


def check_together(criteria: Sequence[Mapping[str, Any]]) -> None:
    """Raise `SpecError` when the criteria are too many, or too large for one grader process."""
    if not 0 < len(criteria) <= MAX_CRITERIA:
        message = f"An eval has 1 to {MAX_CRITERIA} criteria, not {len(criteria)}."
        raise SpecError([SpecProblem("", message)])
    for part in grader_parts(criteria):
        parse_grader(part.grader)

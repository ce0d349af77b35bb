"""Pairs to read first: completions that score high although they are unlike the reference."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rapidfuzz import fuzz, utils

from graders.paths import Absent, Path
from graders.spec import variables
from trainer.dry_run.grader import parsed
from trainer.dry_run.texts import cut
from trainer.sampling import Rollout
from trainer.spec import TrainSpec
from trainer.spread import reaches

#: Pairs that the report shows.
PAIRS = 10
#: A completion less alike than this is suspicious where it scores high.
UNLIKE = 0.5

#: Names of fields that hold a good answer in many data sets, in this order.
USUAL_NAMES = (
    *("reference_answer", "reference", "answer", "ground_truth"),
    *("target", "expected", "solution", "label"),
)

_SIMILARITY = (
    "Similarity is the share of the words that both have in common, whatever their order and "
    "case, from 0 to 1."
)


@dataclass(frozen=True)
class Reference:
    """The variable that stands for a good answer, and why this one was taken."""

    path: Path
    why: str


def find_reference(spec: TrainSpec, items: Sequence[dict[str, Any]]) -> Reference | None:
    """Choose what completions are compared with; ``None`` where nothing stands for an answer.

    It is what a warm start would imitate, or what the grader reads of the rows: of several fields
    the one with the longest text, of several parts of a field what holds them all. A grader that
    names no field, as one in python, leaves the usual names to look for.
    """
    if (
        spec.reinforcement.warm_start is not None
        and spec.reinforcement.warm_start.reference_field is not None
    ):
        return Reference(
            Path("item", (spec.reinforcement.warm_start.reference_field,)),
            "the warm start imitates",
        )
    by_field: dict[str | int, list[Path]] = {}
    for path in variables(parsed(spec.reinforcement.grader)):
        if path.namespace == "item":
            by_field.setdefault(path.steps[0], []).append(path)
    if by_field:
        shared = [_shared(paths) for paths in by_field.values()]
        longest = max(shared, key=lambda path: (_length(path, items), str(path)))
        return Reference(longest, "the grader reads")
    named = [name for name in USUAL_NAMES if all(name in item for item in items)]
    return Reference(Path("item", (named[0],)), "is named like one") if named else None


def suspicious(
    spec: TrainSpec,
    rollouts: Sequence[Rollout],
    hints: Sequence[list[str]],
    *,
    solved_at: float,
) -> dict[str, Any]:
    """The ``suspicious`` part of the report.

    Args:
        hints: what may be said about each rollout.
    """
    chosen = find_reference(spec, [r.row.item for r in rollouts])
    path = None if chosen is None else chosen.path
    scored = [
        (rollout, score, hint)
        for rollout, hint in zip(rollouts, hints, strict=True)
        if (score := rollout.score) is not None
    ]
    high = _high([score for _, score, _ in scored], solved_at)
    found: dict[tuple[int, str], dict[str, Any]] = {}
    compared = 0
    for rollout, score, said in scored:
        reference = None if path is None else text_of(path, rollout.row.item)
        if reference is None:
            continue
        compared += 1
        alike = similarity(rollout.text, reference)
        if high is not None and score >= high and alike < UNLIKE:
            found[rollout.row.index, rollout.text] = {
                "row": rollout.row.index,
                "text": cut(rollout.text),
                "reference": cut(reference),
                "score": score,
                "similarity": alike,
                "hints": said,
            }
    order = sorted(found.values(), key=lambda pair: (pair["similarity"], -pair["score"]))
    how = _how(chosen, high)
    shown = None if path is None else str(path)
    return {"reference": shown, "how": how, "compared": compared, "pairs": order[:PAIRS]}


def similarity(text: str, reference: str) -> float:
    """Share of words in common, 0 to 1; of characters, where one of the two has no word."""
    words = utils.default_process(text), utils.default_process(reference)
    if all(words):
        return fuzz.token_set_ratio(*words) / 100
    return fuzz.ratio(text, reference) / 100


def text_of(path: Path, item: dict[str, Any]) -> str | None:
    """The value of a variable as text; ``None`` where the row lacks it."""
    try:
        value = path.find(item)
    except Absent:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shared(paths: Iterable[Path]) -> Path:
    first, *others = (path.steps for path in paths)
    length = len(first)
    for steps in others:
        same = (a == b for a, b in zip(first[:length], steps, strict=False))
        length = next((i for i, alike in enumerate(same) if not alike), min(length, len(steps)))
    return Path("item", first[:length])


def _length(path: Path, items: Sequence[dict[str, Any]]) -> float:
    return sum(len(text_of(path, item) or "") for item in items) / max(1, len(items))


def _high(scores: list[float], solved_at: float) -> float | None:
    """The score from which on a completion is high: solved, or of the best tenth.

    ``None`` where none stands out.
    """
    if any(reaches(score, solved_at) for score in scores):
        return solved_at - 1e-9
    if not scores or max(scores) == min(scores):
        return None
    best = sorted(scores)[int(0.9 * (len(scores) - 1))]
    return best if best > min(scores) else max(scores)


def _how(reference: Reference | None, high: float | None) -> str:
    if reference is None:
        return "The rows hold no field that stands for a good answer, so nothing is compared."
    chosen = f"The reference is {reference.path}, which {reference.why}. {_SIMILARITY}"
    if high is None:
        return f"{chosen} No completion scores above the others, so none is listed."
    return (
        f"{chosen} Listed are completions that score {high:.3g} or more and are less than "
        f"{UNLIKE:g} alike, the least alike first."
    )

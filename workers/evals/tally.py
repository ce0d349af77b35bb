"""Counting a run's items: the figures that a run shows, kept in step with its stored items."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.models import EvalItem, EvalRun

PASS, FAIL, ERROR = "pass", "fail", "error"
_COUNT_OF = {PASS: "passed", FAIL: "failed", ERROR: "errored"}
_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")


def status_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Return what became of an item: one criterion without a score makes it an error."""
    if any(each["score"] is None for each in results):
        return ERROR
    return PASS if all(each["passed"] for each in results) else FAIL


class Tally:
    """The figures of a run."""

    def __init__(self, criteria: Sequence[Mapping[str, Any]], total: int) -> None:
        self._counts = {"total": total, "errored": 0, "failed": 0, "passed": 0}
        self._criteria = {
            each["id"]: {"testing_criteria": each["id"], "passed": 0, "failed": 0, "errored": 0}
            for each in criteria
        }
        self._usage: dict[str, dict[str, Any]] = {}

    @property
    def counted(self) -> int:
        """How many items were counted."""
        return sum(self._counts[name] for name in _COUNT_OF.values())

    def go_on(self, run: EvalRun) -> None:
        """Go on from the figures that a run's row shows."""
        self._counts |= {name: run.result_counts.get(name, 0) for name in _COUNT_OF.values()}
        for shown in run.per_testing_criteria_results:
            self._criteria[shown["testing_criteria"]] = dict(shown)
        self._usage = {shown["model_name"]: dict(shown) for shown in run.per_model_usage}

    def add(self, item: EvalItem) -> None:
        """Count one item."""
        self._counts[_COUNT_OF[item.status]] += 1
        for result in item.results:
            if (counts := self._criteria.get(result["id"])) is not None:
                verdict = PASS if result["passed"] else FAIL
                counts[_COUNT_OF[ERROR if result["score"] is None else verdict]] += 1
            for model, usage in _judges(result.get("sample")):
                self._use(model, usage)
        sample = item.sample or {}
        if sample.get("model"):
            self._use(sample["model"], sample["usage"])

    def show(self, run: EvalRun) -> None:
        """Write the figures into a run's row."""
        run.result_counts = dict(self._counts)
        run.per_testing_criteria_results = [dict(each) for each in self._criteria.values()]
        run.per_model_usage = [dict(each) for each in self._usage.values()]

    def _use(self, model: str, usage: Mapping[str, Any]) -> None:
        new = {"model_name": model, "invocation_count": 0, **dict.fromkeys(_TOKENS, 0)}
        total = self._usage.setdefault(model, new)
        total["invocation_count"] += 1
        for name in _TOKENS:
            total[name] += usage.get(name) or 0


def _judges(said: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the judges that were asked for one result, with their tokens."""
    for each in (said or {}).get("graders") or [said or {}]:
        if each.get("model") and each.get("usage") and not each.get("cached"):
            yield each["model"], each["usage"]

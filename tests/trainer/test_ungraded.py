"""Completions without a score: in the metrics, in evaluations, and when they stop the job."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graders.client import Reply
from graders.engine import Engine
from graders.outcome import Abstain, Failure, Outcome, Score
from graders.trace import Trace, Usage
from trainer.data import PromptRow
from trainer.errors import GraderFailures
from trainer.evaluation import Evaluator, table
from trainer.grader_health import grader_health
from trainer.metrics import step_metrics
from trainer.policy import Policy
from trainer.rollout.base import Completion, Sampling
from trainer.sampling import Collector, Rollout, check_failures

ROWS = [PromptRow(i, [1, 2], [], {}) for i in range(4)]
DEAD = Failure("model_grader_server_error", "The judge cannot be reached.", "judge")
UNREAD = Failure("sample_parse_error", "Not JSON.", "json")
SHY = Abstain("no opinion")
CHECK = {
    "type": "string_check",
    "name": "any",
    "operation": "eq",
    "input": "{{sample.output_json.word}}",
    "reference": "{{item.word}}",
}
MULTI = {
    "type": "multi",
    "name": "reward",
    "graders": {"word": CHECK, "long": {**CHECK, "input": "{{sample.output_text}}"}},
    "calculate_output": "word + long",
}


def _rollout(
    outcome: Outcome, traces: tuple[Trace, ...] = (), *, row: PromptRow = ROWS[0]
) -> Rollout:
    return Rollout(row, Completion([5, 6], [-1.0, -1.0], False), "text", outcome, 0.5, traces)


def _graded(grader: dict[str, Any], text: str) -> Rollout:
    graded = asyncio.run(Engine(grader).grade({"output_text": text}, {"word": "a"}))
    return _rollout(graded.outcome, graded.traces)


# --- metrics ----------------------------------------------------------------------------------


def test_every_grader_tells_its_scores_failures_and_time() -> None:
    health = grader_health(MULTI, [_graded(MULTI, t) for t in ('{"word": "a"}', "no", "a", "{}")])
    assert list(health) == ["reward", "word", "long"]
    assert health["word"]["mean"] == 1.0
    assert health["word"]["failures"] == {"sample_parse_error": 2, "sample_variable_error": 1}
    # The child that does score is heard although the whole fails.
    assert health["long"]["mean"] == 0.25
    assert health["long"]["failures"] == {}
    assert health["reward"]["mean"] == 1.0
    assert health["reward"]["failures"] == health["word"]["failures"]
    assert 0 < health["long"]["latency_mean_s"] < health["reward"]["latency_mean_s"]


def test_a_child_may_bear_the_name_of_the_whole() -> None:
    named = {**MULTI, "name": "word"}
    health = grader_health(named, [_graded(named, '{"word": "a"}')])
    assert list(health) == ["word", "word.word", "long"]
    assert (health["word"]["mean"], health["word.word"]["mean"]) == (1.0, 1.0)


def test_tokens_are_summed_and_cached_answers_take_no_time() -> None:
    traces = [
        Trace("any", "score_model", latency_s=2.0, score=1.0, usage=Usage(90, 10, 50)),
        Trace("any", "score_model", latency_s=4.0, score=0.0, usage=Usage(100, 0)),
        Trace("any", "score_model", latency_s=0.0, score=0.5, cached=True),
        Trace("any", "score_model", latency_s=3.0, detail="no opinion"),
    ]
    health = grader_health(CHECK, [_rollout(Score(0.0), (trace,)) for trace in traces])
    assert health == {
        "any": {
            "mean": 0.5,
            "latency_mean_s": 3.0,
            "failures": {},
            "abstained": 1,
            "tokens": 200,
            "cached": 1,
        }
    }


@pytest.mark.parametrize("outcome", [SHY, DEAD])
def test_a_step_without_any_score_has_metrics_that_are_json(outcome: Outcome) -> None:
    rollouts = [_rollout(outcome)] * 4
    data = step_metrics(CHECK, rollouts, rollouts, step=1, total_steps=2, update={}, group_size=1)
    json.dumps(data, allow_nan=False)
    assert data["train_mean_reward"] is None
    assert data["full_valid_mean_reward"] is None
    assert data["mean_unresponsive_rewards"] == 1.0
    assert data["graders"]["any"]["mean"] is None


# --- the limit --------------------------------------------------------------------------------


def test_examples_show_every_kind_of_failure() -> None:
    rollouts = [_rollout(o) for o in [DEAD] * 8 + [UNREAD, Score(1.0)]]
    with pytest.raises(GraderFailures, match=r"9 of 10 .* most often \(8\): model_grader") as end:
        check_failures(rollouts, 0.1)
    kinds = [example["outcome"]["kind"] for example in end.value.examples]
    assert kinds == [DEAD.kind, UNREAD.kind, DEAD.kind, DEAD.kind, DEAD.kind]


def test_abstaining_is_no_failure() -> None:
    check_failures([_rollout(SHY)] * 4, 0.0)


# --- evaluation -------------------------------------------------------------------------------


class Scripted:
    """An engine that always says the same, and a grader with one outcome for each row."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self._outcomes, self._asked = outcomes, list[int]()

    def generate(
        self, prompts: list[list[int]], _sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        for index in range(len(prompts)):
            yield index, Completion([3], [-1.0], False)

    def load_weights(self, policy: Policy) -> None:
        raise NotImplementedError

    def submit(self, id: int, *_: Any, **__: Any) -> None:
        self._asked.append(id)

    def receive(self) -> Reply:
        number = self._asked.pop(0)
        return Reply(number, self._outcomes[number], 0.0)


class Letters:
    """A tokenizer of one word."""

    def decode(self, _ids: list[int], **_: Any) -> str:
        return "a"


def _evaluator(outcomes: list[Outcome], directory: Path) -> Evaluator:
    scripted = Scripted(outcomes)
    collector = Collector(scripted, scripted, Letters(), lambda _done, _total: None)
    return Evaluator(collector, ROWS, 2, 8, directory, 0.5)


def test_a_dead_judge_stops_an_evaluation_that_chooses(tmp_path: Path) -> None:
    evaluator = _evaluator([DEAD] * 4, tmp_path)
    with pytest.raises(GraderFailures, match="2 of 2") as end:
        evaluator.selection()
    assert end.value.examples[0]["outcome"]["detail"] == DEAD.detail
    with pytest.raises(GraderFailures, match="4 of 4"):
        evaluator.full(may_fail=False)


@pytest.mark.parametrize("outcome", [SHY, DEAD])
def test_an_evaluation_without_any_score_is_written_and_says_so(
    outcome: Outcome, tmp_path: Path
) -> None:
    evaluator = _evaluator([outcome] * 4, tmp_path)
    rollouts = evaluator.full(may_fail=True)
    stages = [evaluator.stage(name, 0, rollouts) for name in ("base", "final")]
    text = json.dumps(table(stages), allow_nan=False)
    nothing = {"mean": None, "low": None, "high": None}
    summary = json.loads(text)["stages"][0]["held_out"]
    assert summary["reward"] == nothing
    counts = (summary["rows"], summary["failures"], summary["abstentions"])
    if outcome is SHY:
        # Nobody said that these rows are wrong.
        assert (summary["solved"], table(stages)["gains"][0]["solved"]) == (nothing, nothing)
        assert counts == (2, 0, 2)
    else:
        assert summary["solved"]["mean"] == 0.0
        assert counts == (2, 2, 0)


def test_rows_without_an_opinion_take_no_part_in_gains(tmp_path: Path) -> None:
    before = _evaluator([SHY, SHY, SHY, Score(0.0)], tmp_path)
    after = _evaluator([SHY, SHY, Score(0.0), Score(1.0)], tmp_path)
    stages = [
        evaluator.stage(name, 0, evaluator.full(may_fail=False))
        for name, evaluator in (("base", before), ("final", after))
    ]
    assert table(stages)["gains"][0]["solved"]["mean"] == 1.0

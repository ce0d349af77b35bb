"""Criteria of every kind in one run: scores, failures that are none, and what judges cost."""

from typing import Any

from api.schemas.eval_results import OutputItemObject
from bench.fake_judge import FakeJudge, Seen
from tests.evals.bench import EXACT, Lab, Worker, numbered

JUDGE: dict[str, Any] = {
    "type": "score_model",
    "name": "rating",
    "model": "base-1",
    "range": [0, 10],
    "input": [{"role": "user", "content": "Rate {{sample.output_text}}."}],
}
LABEL: dict[str, Any] = {
    "type": "label_model",
    "name": "tone",
    "model": "base-1",
    "labels": ["kind", "rude"],
    "passing_labels": ["kind"],
    "input": [{"role": "user", "content": "Tone of {{sample.output_text}}?"}],
}


def with_server(lab: Lab, server: FakeJudge) -> Worker:
    """The lab's worker with a real HTTP server as its serving service."""
    settings = lab.worker.settings.model_copy(update={"serving_url": server.root})
    return Worker(settings, lab.worker.sessions, lab.worker.store)


def test_model_and_judges_answer_through_the_serving_service(lab: Lab) -> None:
    def answer(seen: Seen) -> str:
        asked = seen.body["messages"][-1]["content"]
        if asked.startswith("Rate"):
            return '{"result": 6, "steps": []}'
        return '{"label": "rude"}' if asked.startswith("Tone") else "Hello"

    with FakeJudge(answer) as server:
        worker = with_server(lab, server)
        run_id = lab.queued_run(EXACT, JUDGE, LABEL, content=numbered(2))
        assert worker.work() == [run_id]
    run = worker.run(run_id)
    verdicts = [(each["passed"], each["failed"]) for each in run.per_testing_criteria_results]
    assert verdicts == [(2, 0), (2, 0), (0, 2)]
    assert run.result_counts == {"total": 2, "passed": 0, "failed": 2, "errored": 0}
    (usage,) = run.per_model_usage
    # Two completions, and two questions of two judges.
    assert (usage["model_name"], usage["invocation_count"]) == ("base-1", 6)
    assert usage["prompt_tokens"] == 66
    rating = worker.items(run_id)[0].results[1]
    assert (rating["score"], rating["passed"]) == (6.0, True)
    assert rating["sample"]["output"] == '{"result": 6, "steps": []}'


def test_a_grading_that_fails_is_counted_apart(lab: Lab) -> None:
    source = "def grade(sample, item):\n    return 1 / int(item['question'][0])"
    code = {"type": "python", "name": "code", "source": source}
    content = numbered(3)
    run_id = lab.queued_run(EXACT, {**code, "pass_threshold": 0.6}, content=content)
    run = lab.finished(run_id)
    assert run.result_counts == {"total": 3, "passed": 1, "failed": 1, "errored": 1}
    exact, python = run.per_testing_criteria_results
    assert (exact["passed"], exact["failed"], exact["errored"]) == (3, 0, 0)
    assert (python["passed"], python["failed"], python["errored"]) == (1, 1, 1)
    broken, whole, half = (item.results[1] for item in lab.worker.items(run_id))
    assert broken["score"] is None
    assert broken["error"]["code"] == "python_grader_runtime_error"
    assert (whole["score"], whole["passed"]) == (1.0, True)
    assert (half["score"], half["passed"]) == (0.5, False)


def test_a_multi_criterion_shows_its_parts(lab: Lab) -> None:
    other = {**EXACT, "name": "other", "operation": "ne"}
    graders = {"a": EXACT, "b": other}
    multi = {"type": "multi", "name": "m", "graders": graders, "calculate_output": "a + b"}
    run_id = lab.queued_run(multi, EXACT, content=numbered(1))
    assert lab.finished(run_id).result_counts["passed"] == 1
    whole, alone = lab.worker.items(run_id)[0].results
    assert (whole["score"], whole["sample"]) == (1.0, {"sub_scores": {"a": 1.0, "b": 0.0}})
    assert (alone["score"], alone["sample"]) == (1.0, None)


def test_the_tokens_of_a_run_are_those_of_its_items(lab: Lab) -> None:
    def answer(seen: Seen) -> str:
        asked = seen.body["messages"][-1]["content"]
        if asked.startswith("Rate"):
            return "no JSON at all"
        return '{"label": "kind"}' if asked.startswith("Tone") else "Hello"

    with FakeJudge(answer) as server:
        worker = with_server(lab, server)
        run_id = lab.queued_run(EXACT, JUDGE, LABEL, content=numbered(2))
        worker.work()
    shown = [OutputItemObject.of(each, eval_id="e") for each in worker.items(run_id)]
    # The judge that could not be understood is paid for as well.
    assert [error.name for each in shown for error in each.errors] == ["rating", "rating"]
    told = [each.sample for item in shown for each in (*item.results, *item.errors)]
    judges = [sample["usage"] for sample in told if sample is not None]
    (usage,) = worker.run(run_id).per_model_usage
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        sampled = sum(getattr(each.sample.usage, name) for each in shown)
        assert usage[name] == sampled + sum(each[name] for each in judges)
    assert usage["invocation_count"] == len(shown) + len(judges) == 6
    for counts in worker.run(run_id).per_testing_criteria_results:
        verdicts = [
            "errored" if each["score"] is None else "passed" if each["passed"] else "failed"
            for item in worker.items(run_id)
            for each in item.results
            if each["id"] == counts["testing_criteria"]
        ]
        for name in ("passed", "failed", "errored"):
            assert counts[name] == verdicts.count(name)

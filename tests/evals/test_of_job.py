"""The evaluations of a job as runs of its own eval: kept once, replaced, and forgotten."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from core.fenced import FencedWriter
from core.models import Eval, EvalItem, EvalRun, Job
from tests.evals.bench import EXACT, Lab
from trainer.rollout.base import Completion
from workers.evals.of_job import JobRuns


def outcome(value: float) -> dict[str, Any]:
    """A score on the wire."""
    return {"outcome": "score", "value": value, "sub_scores": {}, "notes": []}


FAILURE = {
    "outcome": "failure",
    "kind": "sample_parse_error",
    "detail": "No JSON.",
    "grader": "exact",
    "sub_scores": {},
}


def report(*outcomes: dict[str, Any]) -> dict[str, Any]:
    """An evaluation report, as the trainer writes it."""
    rows = [
        {
            "row": n,
            "text": f"say {n}",
            "truncated": n == 1,
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "outcome": each,
            "traces": [],
        }
        for n, each in enumerate(outcomes)
    ]
    return {"rows": rows}


@pytest.fixture
def job(lab: Lab) -> Job:
    """A job as a worker has it, with three validation rows."""
    method = {"type": "reinforcement", "reinforcement": {"grader": EXACT, "hyperparameters": {}}}
    with lab.worker.sessions.begin() as session:
        row = Job(
            project_id=lab.project_id,
            model="base-1-2024",
            method=method,
            training_file="file-t",
            validation_file="file-v",
            seed=1,
            status="running",
            fence=1,
        )
        session.add(row)
        session.flush()
        return row


@pytest.fixture
def runs(lab: Lab, job: Job, tmp_path: Path) -> JobRuns:
    """What keeps the job's evaluations."""
    (tmp_path / "data").mkdir()
    lines = [
        json.dumps({"messages": [{"role": "user", "content": f"{n}?"}], "answer": str(n)})
        for n in range(3)
    ]
    (tmp_path / "data" / "validation.jsonl").write_text("\n".join(lines))
    writer = FencedWriter(lab.worker.sessions, job.id, 1)
    return JobRuns(lab.worker.context, job, writer, tmp_path)


def keep(runs: JobRuns, folder: Path, stage: str, step: int, *outcomes: dict[str, Any]) -> None:
    """Keep one report."""
    path = folder / "report.json"
    path.write_text(json.dumps(report(*outcomes)))
    runs.evaluation(stage, step, path)


def kept(lab: Lab) -> list[tuple[str | None, int | None]]:
    """Phase and step of the runs that are kept."""
    with lab.worker.sessions() as session:
        rows = session.scalars(select(EvalRun).order_by(EvalRun.step, EvalRun.phase))
        return [(row.phase, row.step) for row in rows]


def test_an_evaluation_is_a_run_with_its_samples(
    lab: Lab, job: Job, runs: JobRuns, tmp_path: Path
) -> None:
    keep(runs, tmp_path, "base", 0, outcome(1.0), outcome(0.0), FAILURE)
    with lab.worker.sessions() as session:
        owner = session.scalars(select(Eval)).one()
        run = session.scalars(select(EvalRun)).one()
        items = list(session.scalars(select(EvalItem).order_by(EvalItem.position)))
        assert session.get_one(Job, job.id).eval_id == owner.id
    assert (owner.job_id, owner.project_id) == (job.id, lab.project_id)
    assert (run.status, run.name, run.model) == ("completed", "Base model", "base-1-2024")
    assert run.result_counts == {"total": 3, "passed": 1, "failed": 1, "errored": 1}
    assert run.per_model_usage[0]["prompt_tokens"] == 15
    assert [item.status for item in items] == ["pass", "fail", "error"]
    sample = items[1].sample
    assert sample is not None
    assert sample["input"] == [{"role": "user", "content": "1?"}]
    assert sample["output"] == [{"role": "assistant", "content": "say 1"}]
    assert (sample["finish_reason"], sample["usage"]["total_tokens"]) == ("length", 7)
    assert items[1].item["answer"] == "1"


def test_the_same_evaluation_again_replaces_the_run(
    lab: Lab, runs: JobRuns, tmp_path: Path
) -> None:
    for value in (0.0, 1.0):
        keep(runs, tmp_path, "base", 0, outcome(value))
    assert kept(lab) == [("base_evaluation", 0)]
    with lab.worker.sessions() as session:
        assert session.scalars(select(EvalRun)).one().result_counts["passed"] == 1
        assert len(session.scalars(select(EvalItem)).all()) == 1


def test_a_rewind_forgets_the_runs_beyond(
    lab: Lab, job: Job, runs: JobRuns, tmp_path: Path
) -> None:
    for stage, step in (("base", 0), ("warm_start", 0), ("step", 2), ("step", 4), ("final", 6)):
        keep(runs, tmp_path, stage, step, outcome(1.0))
    FencedWriter(lab.worker.sessions, job.id, 1).rewind(2, phase="rl")
    assert kept(lab) == [
        ("base_evaluation", 0),
        ("warm_start_evaluation", 0),
        ("step_evaluation", 2),
    ]
    FencedWriter(lab.worker.sessions, job.id, 1).rewind(0, phase="loading")
    assert kept(lab) == []


def test_samples_of_a_step_are_a_run_but_for_the_last_step(
    lab: Lab, runs: JobRuns, tmp_path: Path
) -> None:
    from graders.outcome import Score
    from trainer.data import PromptRow
    from trainer.rollout_file import write
    from trainer.sampling import Rollout

    row = PromptRow(2, [1, 2], [{"role": "user", "content": "2?"}], {"answer": "2"})
    completion = Completion([5, 6, 7], [0.0, 0.0, 0.0], False)
    path = tmp_path / "2.valid.jsonl.zst"
    write(path, [Rollout(row, completion, "2", Score(1.0), 0.1)], None, group_size=1)
    keep(runs, tmp_path, "final", 4, outcome(1.0))
    runs.rollouts(2, path)
    runs.rollouts(4, path)
    assert kept(lab) == [("step_evaluation", 2), ("final_evaluation", 4)]
    with lab.worker.sessions() as session:
        run = session.scalars(select(EvalRun).where(EvalRun.step == 2)).one()
        item = session.scalars(select(EvalItem).where(EvalItem.run_id == run.id)).one()
    assert run.model.endswith(":ckpt-step-2")
    assert item.item["answer"] == "2"
    assert item.sample is not None
    assert item.sample["usage"]["completion_tokens"] == 3


def test_a_deleted_eval_gets_no_more_runs(lab: Lab, runs: JobRuns, tmp_path: Path) -> None:
    keep(runs, tmp_path, "base", 0, outcome(1.0))
    with lab.worker.sessions.begin() as session:
        session.scalars(select(Eval)).one().deleted_at = 1
    keep(runs, tmp_path, "final", 4, outcome(1.0))
    assert kept(lab) == [("base_evaluation", 0)]

"""Dry runs: they go the way of jobs, and end with a report."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.ids import new_id
from core.judges import JudgeBook
from core.models import DRY_RUN, File
from graders.judges.config import JudgeConfig
from graders.services import ServicesConfig
from tests.workers.lab import GRADER, METHOD, Lab, rows, wait_for
from tests.workers.validating import error_of, method_with, validate
from workers.supervisor.dry_run import with_judge_prices

REPORT = json.loads((Path(__file__).parents[1] / "fakes" / "dry_run_report.json").read_text())
PLAN = {"rows": "auto", "samples_per_row": "auto"}
#: The lab's method without a warm start: its dry run speaks for a job.
BARE = {"grader": GRADER, "hyperparameters": {"max_steps": 6, "batch_size": 2}}


def new_dry_run(lab: Lab, plan: dict[str, Any] = PLAN, **columns: Any) -> str:
    values = {"id": new_id("dryrun-"), "kind": DRY_RUN, "plan": plan, "priority": 1}
    return lab.new_job(**{**values, **columns})


def queued(lab: Lab, **columns: Any) -> str:
    dry_run = new_dry_run(lab, **columns)
    validate(lab)
    assert lab.job(dry_run).status == "queued", lab.messages(dry_run)
    return dry_run


@pytest.mark.parametrize(
    ("plan", "group_size", "resolved"),
    [
        (PLAN, "auto", {"rows": 12, "samples_per_row": 8}),
        ({"rows": 3, "samples_per_row": 5}, "auto", {"rows": 3, "samples_per_row": 5}),
        ({"rows": 500, "samples_per_row": "auto"}, 4, {"rows": 12, "samples_per_row": 4}),
        ({"rows": "auto", "samples_per_row": "auto"}, 256, {"rows": 12, "samples_per_row": 64}),
    ],
)
def test_validation_resolves_the_plan(
    lab: Lab, plan: dict[str, Any], group_size: int | str, resolved: dict[str, int]
) -> None:
    dry_run = queued(lab, plan=plan, method=method_with(hyperparameters={"group_size": group_size}))
    assert lab.job(dry_run).plan == resolved
    assert lab.job(dry_run).method["reinforcement"]["hyperparameters"]["temperature"] == 1.0


def test_validation_refuses_what_a_job_would_be_refused_for(lab: Lab) -> None:
    grader = {**GRADER, "reference": "{{item.anwser}}"}
    error = error_of(lab, new_dry_run(lab, method=method_with(grader=grader)))
    assert error["code"] == "invalid_grader"
    assert "did you mean item.answer?" in error["message"]


def test_an_undisturbed_one_leaves_its_report_and_its_samples(lab: Lab) -> None:
    dry_run = queued(lab)
    assert lab.run() == dry_run
    job = lab.job(dry_run)
    assert (job.status, job.step, job.total_steps, job.phase) == ("succeeded", 96, 96, "dry_run")
    expected = with_judge_prices(REPORT, lab.context.judges)
    assert job.report == expected
    assert (job.fine_tuned_model, lab.checkpoints(dry_run), lab.rollouts(dry_run)) == (None, [], [])
    with lab.context.sessions() as session:
        (samples,) = [session.get_one(File, name) for name in job.result_files]
    assert (samples.filename, samples.purpose) == ("samples.jsonl", "fine-tune-results")
    assert json.loads(lab.context.store.get_bytes(samples.object_key)) == {"row": 0}
    assert lab.messages(dry_run)[-4:] == [
        "Files validated, moving dry run to queued state",
        "Dry run started",
        "Sampling and grading",
        "The dry run has completed; its report is there",
    ]


def test_it_goes_ahead_of_jobs_that_wait(lab: Lab) -> None:
    job = lab.queued_job()
    dry_run = queued(lab)
    assert [lab.run(), lab.run()] == [dry_run, job]


@pytest.mark.parametrize("point", ["loading", "dry_run", "dry_run:96"])
def test_a_killed_one_starts_again(lab: Lab, point: str) -> None:
    dry_run = queued(lab)
    lab.mishap(point, "kill")
    lab.run_all()
    assert lab.job(dry_run).status == "succeeded", lab.messages(dry_run)
    assert len(lab.remembered("runs")) == 2
    assert any(m.endswith("The dry run will start again.") for m in lab.messages(dry_run))


def test_one_that_always_dies_fails(lab: Lab) -> None:
    dry_run = queued(lab)
    lab.mishap("dry_run", "kill", times=9)
    lab.run_all()
    job = lab.job(dry_run)
    assert (job.status, job.error["code"]) == ("failed", "killed")
    assert job.error["message"].startswith("The dry run stopped 3 times. The last time:")


def test_what_would_pause_a_job_fails_a_dry_run(lab: Lab) -> None:
    dry_run = queued(lab)
    lab.mishap("dry_run", "no_disk")
    lab.run()
    assert (lab.job(dry_run).status, lab.job(dry_run).error["code"]) == ("failed", "no_disk")


def test_a_worker_that_ends_gives_it_back(lab: Lab) -> None:
    dry_run = queued(lab)
    lab.script(mishaps={"dry_run:48": {"do": "wait"}, "dry_run:96": {"do": "paused"}})
    running = lab.start()
    wait_for(lambda: lab.reached("dry_run:48"))
    assert wait_for(lambda: lab.job(dry_run).phase == "dry_run")
    running.stopping.set()
    wait_for(lambda: {"type": "pause"} in lab.remembered("control"))
    lab.let_go()
    running.join()
    assert (lab.job(dry_run).status, lab.job(dry_run).failed_attempts) == ("queued", 0)
    lab.run()
    assert lab.job(dry_run).status == "succeeded"


def test_cancelling_ends_it(lab: Lab) -> None:
    dry_run = queued(lab)
    lab.mishap("dry_run:48", "wait")
    running = lab.start()
    wait_for(lambda: lab.reached("dry_run:48"))
    lab.move(dry_run, "cancelled")
    running.join()
    assert lab.job(dry_run).report is None


def succeeded(lab: Lab, *, share: float = 0.5, total: int = 32, **columns: Any) -> str:
    """A dry run whose report says that a share of its groups has no spread."""
    values = {"method": {"type": "reinforcement", "reinforcement": BARE}, **columns}
    dry_run = queued(lab, **values)
    lab.run()
    groups = {**REPORT["groups"], "total": total, "share_without_spread": share}
    with lab.context.sessions.begin() as session:
        job = session.get_one(type(lab.job(dry_run)), dry_run)
        job.report = {**job.report, "groups": groups}
    return dry_run


def job_naming(lab: Lab, dry_run: str, *, training_file: str | None = None, **block: Any) -> str:
    method = {"type": "reinforcement", "reinforcement": {**BARE, "dry_run": dry_run, **block}}
    same = lab.job(dry_run).training_file
    return lab.new_job(method, training_file=training_file or same)


def look_of(lab: Lab, job_id: str) -> str:
    validate(lab)
    assert lab.job(job_id).status == "queued", lab.messages(job_id)
    return lab.job(job_id).plan["spread_check"]


def test_a_job_looks_for_itself_unless_told_otherwise(lab: Lab) -> None:
    assert look_of(lab, lab.new_job()) == "refuse"
    assert look_of(lab, lab.new_job(method_with(allow_no_spread=True))) == "warn"


def test_a_dry_run_of_the_same_speaks_for_the_job(lab: Lab) -> None:
    dry_run = succeeded(lab)
    # The same content uploaded again is the same.
    again = lab.file(rows(12))
    job_id = job_naming(lab, dry_run, training_file=again)
    assert look_of(lab, job_id) == "off"
    assert lab.messages(job_id, level="warn") == []
    lab.run()
    assert not [m for m in lab.messages(job_id) if "spread" in m]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"grader": {**GRADER, "operation": "like"}}, "another grader;"),
        ({"hyperparameters": {"temperature": 0.5}}, "another sampling setting;"),
        ({"training_file": rows(14)}, "another training file;"),
        ({"warm_start": {"reference_field": "answer"}}, "before the warm start"),
    ],
)
def test_what_differs_is_told_and_the_job_looks_for_itself(
    lab: Lab, changes: dict[str, Any], named: str
) -> None:
    dry_run = succeeded(lab)
    if "training_file" in changes:
        changes = {"training_file": lab.file(changes["training_file"])}
    job_id = job_naming(lab, dry_run, **changes)
    assert look_of(lab, job_id) == "refuse"
    (warning,) = lab.messages(job_id, level="warn")
    assert named in warning and dry_run in warning


def test_a_dry_run_without_spread_refuses_the_job_before_it_costs_anything(lab: Lab) -> None:
    dry_run = succeeded(lab, share=0.97)
    error = error_of(lab, job_naming(lab, dry_run))
    assert (error["code"], error["param"]) == ("no_spread", "method.reinforcement.dry_run")
    assert REPORT["verdict"]["message"] in error["message"]
    assert "allow_no_spread" in error["message"]
    assert look_of(lab, job_naming(lab, dry_run, allow_no_spread=True)) == "off"


def test_a_small_dry_run_proves_nothing(lab: Lab) -> None:
    dry_run = succeeded(lab, share=1.0, total=12)
    job_id = job_naming(lab, dry_run)
    assert look_of(lab, job_id) == "refuse"
    assert "saw 12 groups only" in lab.messages(job_id, level="warn")[0]


def test_no_spread_ends_a_job_with_its_reason(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("rl", "no_spread")
    lab.run_all()
    job = lab.job(job_id)
    assert (job.status, job.error["code"]) == ("failed", "no_spread")
    assert len(lab.remembered("runs")) == 1


def test_the_look_is_an_event_that_a_resumed_run_does_not_repeat(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:1", "kill")
    lab.run_all()
    found = [m for m in lab.messages(job_id) if "have a spread of scores" in m]
    assert len(found) == 1
    event = next(e for e in lab.events(job_id) if e.message == found[0])
    assert event.data["groups"]["with_spread"] == 2
    lab.assert_as_if_undisturbed(job_id)


def test_judges_with_prices_have_a_cost() -> None:
    judge = JudgeConfig(
        model="judge-*", base_url="https://judge.example.com/v1", input_price=1, output_price=10
    )
    report = with_judge_prices(REPORT, JudgeBook(ServicesConfig(judges=(judge,))))
    (tokens,) = report["estimate"]["judge_tokens"]
    low = tokens["low"]
    expected = (low * tokens["prompt_share"] + low * (1 - tokens["prompt_share"]) * 10) / 1e6
    assert tokens["cost"]["low"] == pytest.approx(expected, rel=1e-3)
    assert tokens["cost"]["high"] > tokens["cost"]["low"]
    free = with_judge_prices(REPORT, JudgeBook(ServicesConfig()))
    assert free["estimate"]["judge_tokens"][0]["cost"] is None


def test_the_labs_method_is_one_of_dry_runs_too(lab: Lab) -> None:
    assert queued(lab, method=METHOD)

"""A dry run on the tiny model, from its job directory to its report."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.schemas.dry_run_report import DryRunReport
from tests.trainer.reports import reports_of, reports_until_paused
from trainer.channel import Channel
from trainer.errors import NoSpread
from trainer.run import run

MakeJob = Callable[..., Path]
PLAN = {"rows": 6, "samples_per_row": 4, "price_per_hour": 2.0, "currency": "USD"}


def one(reports: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [r for r in reports if r["type"] == kind]
    return found


def dry_run(make_job: MakeJob, name: str = "dry", **changes: Any) -> tuple[Path, dict[str, Any]]:
    job_dir = make_job(name, **{"dry_run": PLAN, "warm_start": None, **changes})
    reports = reports_of(job_dir)
    report: dict[str, Any] = json.loads((job_dir / one(reports, "dry_run")["path"]).read_text())
    return job_dir, report


def test_a_dry_run_samples_grades_and_reports(make_job: MakeJob) -> None:
    job_dir, report = dry_run(make_job)
    DryRunReport.model_validate(report)
    assert (report["rows"], report["rows_in_file"], report["completions"]) == (6, 8, 24)
    # The tiny model is random: it hardly ever ends an answer within 12 tokens.
    assert report["truncation"]["share"] > 0.5
    assert report["lengths"]["limit"] == 12
    assert [use["grader"] for use in report["graders"]] == ["letters", "a", "b"]
    assert all(use["runs"] == 24 for use in report["graders"])
    assert report["estimate"]["measured"]["update_tokens_per_s"] > 0
    assert report["estimate"]["cost"]["currency"] == "USD"
    rows = [json.loads(line) for line in (job_dir / "out/reports/samples.jsonl").open()]
    assert len(rows) == 24
    by_row = {row["row"]: row["scores"] for row in report["by_row"]}
    for index, row in enumerate(rows):
        assert row["item"] == {"second": "b"}
        assert by_row[row["row"]][index % 4] == row["outcome"]["value"]
        assert [trace["grader"] for trace in row["traces"]] == ["letters", "a", "b"]


def test_it_says_how_far_it_is_and_trains_nothing(make_job: MakeJob) -> None:
    job_dir = make_job(dry_run={**PLAN, "samples_per_row": 32}, warm_start=None)
    reports = reports_of(job_dir)
    assert [r["phase"] for r in reports if r["type"] == "phase"] == ["loading", "dry_run"]
    assert [(r["done"], r["total"]) for r in reports if r["type"] == "progress"] == [
        (64, 192),
        (128, 192),
        (192, 192),
    ]
    assert one(reports, "started")["total_steps"] == 192
    assert {r["type"] for r in reports} == {
        "phase",
        "started",
        "progress",
        "result_file",
        "dry_run",
    }
    assert not (job_dir / "out/checkpoints").exists()


def test_the_same_seed_finds_the_same(make_job: MakeJob) -> None:
    texts = []
    for name in ("one", "two"):
        job_dir, _ = dry_run(make_job, name)
        lines = (job_dir / "out/reports/samples.jsonl").read_text().splitlines()
        texts.append([json.loads(line)["text"] for line in lines])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 12


def test_more_rows_than_there_are_cannot_be_asked_for_twice(make_job: MakeJob) -> None:
    _, report = dry_run(make_job, dry_run={**PLAN, "rows": 8})
    assert sorted(row["row"] for row in report["by_row"]) == list(range(8))


def test_a_grader_that_fails_is_what_the_report_is_for(make_job: MakeJob) -> None:
    grader = {
        "type": "string_check",
        "name": "json",
        "operation": "eq",
        "input": "{{sample.output_json.x}}",
        "reference": "1",
    }
    _, report = dry_run(make_job, grader=grader)
    assert report["verdict"]["level"] == "bad"
    assert report["outcomes"]["failures"] > 12
    assert report["failures"][0]["kind"] == "sample_parse_error"


def test_one_that_is_told_to_stop_stops(make_job: MakeJob) -> None:
    reports_until_paused(make_job(dry_run=PLAN, warm_start=None), saying="starts again")


DULL = {
    "type": "string_check",
    "name": "dull",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "never written",
}
LONG = {"max_steps": 9, "batch_size": 4, "group_size": 2}


def test_a_job_without_spread_ends_before_its_first_step(make_job: MakeJob) -> None:
    job_dir = make_job(grader=DULL, spread_check="refuse", hyperparameters=LONG)
    lines = io.StringIO()
    with pytest.raises(NoSpread, match="32 of 32 groups"):
        run(job_dir, Channel(lines, None))
    reports = [json.loads(line) for line in lines.getvalue().splitlines()]
    found = one(reports, "probe")
    assert (found["level"], found["data"]["groups"]["total"]) == ("error", 32)
    assert found["data"]["completions"] == 64
    # After the warm start, whose weights are kept.
    kept = [(r["phase"], r["step"]) for r in reports if r["type"] == "checkpoint"]
    assert kept == [("warm_start", 2), ("warm_start", 4), ("rl", 0)]
    assert not [r for r in reports if r["type"] == "metrics" and r["phase"] == "rl"]


def test_told_to_go_on_it_trains_and_says_so(make_job: MakeJob) -> None:
    reports = reports_of(make_job(grader=DULL, hyperparameters={**LONG, "max_steps": 2}))
    found = one(reports, "probe")
    assert found["level"] == "warn"
    assert "4 of 4 groups (100%) have no spread" in found["message"]
    assert [r["step"] for r in reports if r["type"] == "metrics" and r["phase"] == "rl"] == [1, 2]


def test_the_look_changes_no_number_of_the_training(make_job: MakeJob) -> None:
    curves = []
    for check in ("off", "refuse"):
        # One group with spread in the first step: further ones are sampled, and thrown away.
        hyper = {"max_steps": 3, "batch_size": 1, "group_size": 8}
        reports = reports_of(make_job(check, spread_check=check, hyperparameters=hyper))
        assert len([r for r in reports if r["type"] == "probe"]) == (check == "refuse")
        curves.append(
            [
                {
                    k: v
                    for k, v in r["data"].items()
                    if k not in ("timing", "graders", "throughput", "memory")
                }
                | {"grader_latency_mean_s": None}
                for r in reports
                if r["type"] == "metrics"
            ]
        )
    assert curves[0] == curves[1]


def test_a_resumed_job_looks_again_only_before_its_first_step(make_job: MakeJob) -> None:
    first = make_job("first", spread_check="refuse")
    reports = reports_until_paused(first, saying="after step 1", type="metrics", phase="rl")
    assert len([r for r in reports if r["type"] == "probe"]) == 1
    second = make_job("second", spread_check="refuse")
    last = [r for r in reports if r["type"] == "checkpoint"][-1]
    (first / last["path"]).rename(second / "resume")
    assert not [r for r in reports_of(second) if r["type"] == "probe"]

"""New jobs: their files, their grader against the rows, their automatic values."""

import json

import pytest

from core.models import Outbox
from tests.workers.lab import GRADER, Lab, rows
from tests.workers.validating import error_of, method_with, validate


def test_good_job_is_queued_with_every_auto_resolved(lab: Lab) -> None:
    job_id = lab.new_job()
    assert validate(lab) == [job_id]
    job = lab.job(job_id)
    assert job.status == "queued"
    values = job.method["reinforcement"]["hyperparameters"]
    assert "auto" not in values.values()
    assert values == job.hyperparameters
    assert "auto" not in job.method["reinforcement"]["warm_start"].values()
    assert lab.messages(job_id) == [
        f"Validating training file: {job.training_file} and validation file: {job.validation_file}",
        "Files validated, moving job to queued state",
    ]


def test_queued_job_asks_for_a_wake_up(lab: Lab) -> None:
    lab.new_job()
    validate(lab)
    with lab.context.sessions() as session:
        assert [o.payload for o in session.query(Outbox)] == [{"queue": "train"}]


def test_every_waiting_job_is_validated_once(lab: Lab) -> None:
    jobs = [lab.new_job(), lab.new_job()]
    assert sorted(validate(lab)) == sorted(jobs)
    assert validate(lab) == []


@pytest.mark.parametrize("param", ["training_file", "validation_file"])
def test_bad_rows_fail_the_job_with_their_place(lab: Lab, param: str) -> None:
    content = rows(12) + b'\n{"answer": "no messages"}\n'
    job_id = lab.new_job(**{param: lab.file(content)})
    error = error_of(lab, job_id)
    assert (error["code"], error["param"]) == (f"invalid_{param}", param)
    assert "line 13" in error["message"]
    told = next(e for e in lab.events(job_id) if e.level == "error")
    assert told.data["errors"][0]["line"] == 13


def test_grader_that_reads_a_missing_field_is_named(lab: Lab) -> None:
    grader = {**GRADER, "reference": "{{item.anser}}"}
    job_id = lab.new_job(method_with(grader=grader))
    error = error_of(lab, job_id)
    assert (error["code"], error["param"]) == ("invalid_grader", "method.reinforcement.grader")
    assert "item.anser" in error["message"] and "item.answer" in error["message"]


def test_monitor_that_reads_a_missing_field_is_named(lab: Lab) -> None:
    monitor = {**GRADER, "reference": "{{item.anser}}"}
    error = error_of(lab, lab.new_job(method_with(monitor_grader=monitor)))
    assert error["param"] == "method.reinforcement.monitor_grader"
    assert "item.anser" in error["message"]


def test_reference_field_that_rows_lack_is_named(lab: Lab) -> None:
    job_id = lab.new_job(method_with(warm_start={"reference_field": "ansver"}))
    error = error_of(lab, job_id)
    assert error["code"] == "invalid_warm_start"
    assert "'ansver'" in error["message"] and "did you mean 'answer'?" in error["message"]


@pytest.mark.parametrize("empty", [None, ""])
def test_reference_field_that_a_row_leaves_empty_is_named(lab: Lab, empty: str | None) -> None:
    row = {"messages": [{"role": "user", "content": "Say nothing."}], "answer": empty}
    content = rows(11) + b"\n" + json.dumps(row).encode()
    error = error_of(lab, lab.new_job(training_file=lab.file(content)))
    assert error["code"] == "invalid_warm_start"
    assert "'answer', which 1 of 12 training rows lack or leave empty" in error["message"]


def test_warm_start_file_is_checked_as_demonstrations(lab: Lab) -> None:
    file_id = lab.file(rows(12))
    job_id = lab.new_job(method_with(warm_start={"file": file_id}), warm_start_file=file_id)
    error = error_of(lab, job_id)
    assert (error["code"], error["param"]) == ("invalid_warm_start_file", "warm_start_file")


def test_deleted_file_is_named(lab: Lab) -> None:
    job_id = lab.new_job(training_file="file-gone")
    error = error_of(lab, job_id)
    assert error["code"] == "deleted_training_file"
    assert "file-gone" in error["message"]


def test_rows_in_both_files_bring_a_warning(lab: Lab) -> None:
    both = rows(12)
    job_id = lab.new_job(
        training_file=lab.file(both), validation_file=lab.file(both + b"\n" + rows(3, first=50))
    )
    validate(lab)
    assert lab.job(job_id).status == "queued"
    (warning,) = [m for m in lab.messages(job_id, level="warn") if "training file" in m]
    assert "12 rows also stand in the training file" in warning


def test_job_cancelled_meanwhile_stays_cancelled(lab: Lab, monkeypatch) -> None:
    job_id = lab.new_job()

    def cancel_meanwhile(*_arguments: object) -> list:
        if lab.job(job_id).status != "cancelled":
            lab.move(job_id, "cancelled")
        return []

    monkeypatch.setattr("workers.grader_checks.check_rows", cancel_meanwhile)
    before = lab.job(job_id).method
    validate(lab)
    assert (lab.job(job_id).status, lab.job(job_id).method) == ("cancelled", before)


def test_job_that_another_worker_validates_is_left_to_it(lab: Lab) -> None:
    job_id = lab.new_job()
    with lab.context.sessions.begin() as session:
        session.get_one(type(lab.job(job_id)), job_id).lease_expires_at = 1e12
    assert validate(lab) == []


def test_normalised_method_of_a_job_can_be_sent_again(lab: Lab) -> None:
    job_id = lab.new_job()
    validate(lab)
    shown = json.loads(json.dumps(lab.job(job_id).method))
    again = lab.new_job(shown)
    validate(lab)
    assert lab.job(again).method == shown

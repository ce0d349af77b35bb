"""What a job's events tell of its files, and when files are read."""

import json
from pathlib import Path
from typing import Any

import pytest
from rft.dataset import Report

from core.models import File
from core.registry import BaseModel
from tests.workers.lab import GRADER, Lab, rows
from tests.workers.validating import error_of, method_with, validate
from workers import file_checks, prompt_lengths

LONG = " ".join(f"word{n}" for n in range(60))


def row(text: str) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text}], "answer": "a"}).encode()


def test_the_event_of_a_validated_job_carries_its_reports(lab: Lab) -> None:
    job_id = lab.new_job(training_file=lab.file(rows(11) + b"\n\n" + rows(1)))
    validate(lab)
    told = next(e for e in lab.events(job_id) if "moving job to queued" in e.message)
    report = Report.from_dict(told.data["training_file"])
    assert (report.rows, report.kind) == (12, "reinforcement")
    assert report.warning_counts == {"blank_lines": 1, "duplicate_row": 1}
    assert told.data["validation_file"]["ok"]
    assert told.data["overlap"]["exact"] == 0


def test_a_file_is_validated_once_for_each_kind(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, str]] = []
    real = file_checks.validate

    def counted(path: Path, kind: str) -> Report:
        read.append((path.stem, kind))
        return real(path, kind)

    monkeypatch.setattr(file_checks, "validate", counted)
    file_id, again = lab.file(rows(12)), lab.file(rows(12))
    lab.new_job(training_file=file_id, validation_file=again)
    lab.new_job(training_file=again, validation_file=file_id)
    validate(lab)
    assert read == [("training_file", "reinforcement")]
    job_id = lab.new_job(method_with(warm_start={"file": again}), warm_start_file=again)
    error_of(lab, job_id)
    assert read[-1] == ("warm_start_file", "warm_start")


def test_rows_that_are_nearly_the_same_bring_a_warning_with_their_lines(lab: Lab) -> None:
    job_id = lab.new_job(
        training_file=lab.file(rows(11) + b"\n" + row(LONG)),
        validation_file=lab.file(row(LONG.upper()) + b"\n" + rows(3, first=50)),
    )
    validate(lab)
    (warning,) = [m for m in lab.messages(job_id, level="warn") if "nearly the same" in m]
    assert "1 row is nearly the same" in warning and "line 1 as line 12" in warning


def test_the_places_of_missing_fields_stand_in_the_event(lab: Lab) -> None:
    grader = {**GRADER, "reference": "{{item.meta.unit}}"}
    error_of(lab, job_id := lab.new_job(method_with(grader=grader)))
    told = next(e for e in lab.events(job_id) if e.level == "error")
    assert told.data["error_counts"] == {"missing_field": 12}
    assert (told.data["errors"][1]["line"], told.data["errors"][1]["path"]) == (2, "/meta")


def test_a_row_too_long_for_the_model_fails_the_job(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lab.context.registry.require("base")
    (base.path / "tokenizer.json").write_text("{}")
    asked: list[Any] = []

    def run(command: list[str], **_: Any) -> Any:
        asked.append(command[3:])

        class Done:
            returncode = 0
            stderr = ""
            stdout = "Loading.\n" + json.dumps(report.to_dict()) + "\n"

        return Done

    def count(_row: dict[str, Any]) -> int:
        return 1793

    path = base.path / "long.jsonl"
    path.write_bytes(row(LONG * 4))
    check = prompt_lengths.LengthCheck(count, 2048 - 256)
    report = prompt_lengths.examine(path, [check])
    monkeypatch.setattr(prompt_lengths.subprocess, "run", run)
    job_id = lab.new_job(
        method_with(warm_start=None), training_file=lab.file(rows(11) + b"\n" + row(LONG * 4))
    )
    error = error_of(lab, job_id)
    assert error["code"] == "invalid_training_file"
    assert "1,793 tokens; 1,792 are allowed" in error["message"]
    [(model, _, limit, *_)] = asked
    assert (model, limit) == (str(base.path), "1792")


def test_short_rows_are_not_counted(tmp_path: Path) -> None:
    base = BaseModel("m", tmp_path, 2048, "tests", 1)
    (tmp_path / "tokenizer.json").write_text("no tokenizer at all")
    path = tmp_path / "rows.jsonl"
    path.write_bytes(rows(3))
    assert prompt_lengths.too_long(base, path, 1000, kind="reinforcement") is None


@pytest.mark.parametrize("template", ["{{ messages }}", "{{ messages }}{{ tools }}"])
def test_tools_that_the_chat_template_drops_bring_a_warning(lab: Lab, template: str) -> None:
    base = lab.context.registry.require("base")
    (base.path / "chat_template.jinja").write_text(template)
    tool = {"type": "function", "function": {"name": "f"}}
    with_tool = json.dumps({**json.loads(row("Call it.")), "tools": [tool]}).encode()
    job_id = lab.new_job(training_file=lab.file(rows(11) + b"\n" + with_tool))
    validate(lab)
    assert lab.job(job_id).status == "queued"
    told = [m for m in lab.messages(job_id, level="warn") if "leaves out" in m]
    assert [m[:31] for m in told] == (
        [] if "tools" in template else ["Training file: line 12 has tool"]
    )


def test_a_report_belongs_to_content_not_to_a_file(lab: Lab) -> None:
    good, bad = lab.file(rows(12)), lab.file(rows(12) + b"\n[]")
    with lab.context.sessions() as session:
        assert session.get_one(File, good).sha256 != session.get_one(File, bad).sha256
    lab.new_job(training_file=good)
    validate(lab)
    assert error_of(lab, lab.new_job(training_file=bad))["code"] == "invalid_training_file"


@pytest.mark.parametrize(
    "line",
    [
        b'{"messages": [], "a\\u0000b": 1, "a\\u0000b": 2}',
        b'{"messages\\ud83d": []}',
        b'{"messages": [{"role": "u\\u0000", "content": "q", "\\u0000": 1}]}',
        b'{"messages": ' + b"[" * 10_000 + b"}",
        b'{"n": 1e999, "m": ' + b"9" * 5_000 + b"}",
        b"\xef\xbb\xbf{}",
        b"\xff\0",
    ],
)
def test_hostile_rows_fail_the_job_on_postgres(postgres_lab: Lab, line: bytes) -> None:
    job_id = postgres_lab.new_job(training_file=postgres_lab.file(rows(12) + b"\n" + line))
    assert error_of(postgres_lab, job_id)["code"] == "invalid_training_file"
    told = next(e for e in postgres_lab.events(job_id) if e.level == "error")
    assert {problem["line"] for problem in told.data["errors"]} == {13}


def test_a_refusal_counts_the_problems_that_it_does_not_tell(lab: Lab) -> None:
    wrong = b'{"messages": []}'
    for count, said in ((1, ""), (2, "(1 more problem is "), (3, "(2 more problems are ")):
        training = lab.file(b"\n".join([wrong] * count))
        message = error_of(lab, lab.new_job(training_file=training))["message"]
        assert said in message and ("more problem" in message) == (count > 1)

"""Dry runs over HTTP: starting, reading and cancelling them, and naming one in a job."""

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from api.schemas.dry_run_report import DryRunReport
from core.models import File, Job, Outbox
from core.states import transition
from tests.api.examples import (
    GRADER,
    ROWS,
    add_checkpoint,
    error_of,
    job_body,
    reinforcement,
    set_status,
    upload,
)
from tests.api.running import Api, ClientFor

DRY_RUNS, JOBS = "/v1/fine_tuning/dry_runs", "/v1/fine_tuning/jobs"
REPORT: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fakes/dry_run_report.json").read_text()
)


@pytest.fixture
def file_id(client: openai.OpenAI) -> str:
    """An uploaded training file."""
    return upload(client).id


def body(file_id: str, **changes: Any) -> dict[str, Any]:
    """A body that starts a dry run; a change to None leaves the field out."""
    values = {"model": "base-1", "training_file": file_id, "grader": GRADER, **changes}
    return {name: value for name, value in values.items() if value is not None}


def start(http: httpx.Client, file_id: str, **changes: Any) -> dict[str, Any]:
    response = http.post(DRY_RUNS, json=body(file_id, **changes))
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made


def succeed(sessions: sessionmaker[Session], dry_run_id: str) -> str:
    """Bring a dry run to its end, as a worker does; returns the id of its samples."""
    with sessions.begin() as session:
        transition(session, dry_run_id, "queued", plan={"rows": 12, "samples_per_row": 8})
        job = transition(session, dry_run_id, "running")
        samples = File(
            project_id=job.project_id,
            filename="samples.jsonl",
            purpose="fine-tune-results",
            bytes=1,
            sha256="0",
            object_key="key",
        )
        session.add(samples)
        session.flush()
        job.result_files, job.step, job.total_steps = [samples.id], 96, 96
        transition(session, dry_run_id, "succeeded", report=REPORT)
        return samples.id


def test_a_new_dry_run_is_shown_whole(
    http: httpx.Client, file_id: str, sessions: sessionmaker[Session]
) -> None:
    made = start(http, file_id, rows=4, seed=3, metadata={"a": "b"})
    assert made["id"].startswith("dryrun-")
    hyperparameters = made["method"]["reinforcement"].pop("hyperparameters")
    assert (hyperparameters["batch_size"], hyperparameters["algorithm"]) == ("auto", "auto")
    assert set(made["method"]["reinforcement"].pop("limits").values()) == {"auto"}
    assert made == {
        "id": made["id"],
        "object": "fine_tuning.dry_run",
        "created_at": made["created_at"],
        "finished_at": None,
        "status": "validating_files",
        "model": "base-1-2024",
        "training_file": file_id,
        "validation_file": None,
        "method": {"type": "reinforcement", "reinforcement": {"grader": GRADER}},
        "rows": 4,
        "samples_per_row": "auto",
        "seed": 3,
        "metadata": {"a": "b"},
        "error": None,
        "progress": None,
        "report": None,
        "samples_file": None,
    }
    with sessions() as session:
        row = session.get_one(Job, made["id"])
        assert (row.kind, row.priority) == ("dry_run", 1)
        wakes = session.scalars(select(Outbox.payload)).all()
        assert wakes == [{"queue": "light"}]


def test_a_whole_method_is_that_of_the_job_to_come(http: httpx.Client, file_id: str) -> None:
    hyper = {"group_size": 4, "max_steps": 20, "temperature": 0.7}
    method = reinforcement(hyperparameters=hyper, warm_start={"reference_field": "answer"})
    made = start(http, file_id, grader=None, method=method, max_completion_tokens=16)
    block = made["method"]["reinforcement"]
    assert block["warm_start"]["reference_field"] == "answer"
    assert {name: block["hyperparameters"][name] for name in hyper} == hyper
    assert block["hyperparameters"]["max_completion_tokens"] == 16


@pytest.mark.parametrize(
    ("changes", "param", "said"),
    [
        ({"grader": None}, "grader", "exactly one of 'grader' and 'method'"),
        ({"method": reinforcement()}, "method", "exactly one of 'grader' and 'method'"),
        ({"rows": 0}, "rows", "from 1 to 1024"),
        ({"rows": 2000}, "rows", "from 1 to 1024"),
        ({"samples_per_row": 1}, "samples_per_row", "from 2 to 64"),
        ({"rows": 1024, "samples_per_row": 64}, "rows", "65,536 completions"),
        ({"temperature": 3}, "temperature", "above 0 and at most 2"),
        ({"max_completion_tokens": 0}, "max_completion_tokens", "from 1 up"),
        ({"max_completion_tokens": 4000}, None, "holds 2048 tokens"),
        ({"grader": {**GRADER, "operation": "is"}}, "grader.operation", "not 'is'"),
        ({"grader": {**GRADER, "inptu": ""}}, "grader.inptu", "did you mean 'input'"),
        ({"sample_per_row": 3}, "sample_per_row", "did you mean 'samples_per_row'"),
        ({"suffix": "a"}, "suffix", "Unknown parameter"),
        ({"model": "base-9"}, None, "base-9 is not available"),
        ({"training_file": "file-x"}, "training_file", "file-x"),
        ({"seed": -1}, "seed", "must be at least 0"),
    ],
)
def test_what_is_wrong_is_named(
    http: httpx.Client, file_id: str, changes: dict[str, Any], param: str | None, said: str
) -> None:
    error = error_of(http.post(DRY_RUNS, json=body(file_id, **changes)), 400)
    assert said in error["message"], error
    if param is not None:
        assert error["param"] == param


def test_a_value_beside_the_method_must_not_differ(http: httpx.Client, file_id: str) -> None:
    method = reinforcement(hyperparameters={"temperature": 0.5})
    wrong = body(file_id, grader=None, method=method, temperature=1)
    error = error_of(http.post(DRY_RUNS, json=wrong), 400)
    assert error["param"] == "temperature"
    assert start(http, file_id, grader=None, method=method, temperature=0.5)


def test_the_report_and_its_samples_are_shown_once_there(
    http: httpx.Client, file_id: str, sessions: sessionmaker[Session]
) -> None:
    made = start(http, file_id)
    samples = succeed(sessions, made["id"])
    shown = http.get(f"{DRY_RUNS}/{made['id']}").json()
    assert shown["status"] == "succeeded"
    assert (shown["rows"], shown["samples_per_row"]) == (12, 8)
    assert shown["progress"] == {"done": 96, "total": 96}
    assert shown["samples_file"] == samples
    assert shown["report"] == REPORT == DryRunReport.model_validate(REPORT).model_dump()
    assert http.get(f"/v1/files/{samples}").json()["purpose"] == "fine-tune-results"
    listed = http.get(DRY_RUNS).json()["data"]
    assert [each["id"] for each in listed] == [made["id"]]
    messages = [e["message"] for e in http.get(f"{DRY_RUNS}/{made['id']}/events").json()["data"]]
    assert messages == [
        "The dry run has completed; its report is there",
        "Dry run started",
        "Moving dry run to queued state",
        f"Created dry run: {made['id']}",
    ]
    with sessions() as session:
        kinds = session.scalars(select(Outbox.kind)).all()
    assert "webhook" not in kinds


def test_dry_runs_and_jobs_do_not_show_among_each_other(
    http: httpx.Client, client: openai.OpenAI, file_id: str
) -> None:
    dry_run = start(http, file_id, metadata={"a": "b"})["id"]
    job = client.fine_tuning.jobs.create(**job_body(file_id, metadata={"a": "b"})).id
    assert [each.id for each in client.fine_tuning.jobs.list()] == [job]
    assert [each.id for each in client.fine_tuning.jobs.list(metadata={"a": "b"})] == [job]
    for query in ("", "?metadata[a]=b"):
        assert [each["id"] for each in http.get(DRY_RUNS + query).json()["data"]] == [dry_run]
    assert http.get(f"{DRY_RUNS}?metadata[a]=c").json()["data"] == []
    for path in (f"{JOBS}/{dry_run}", f"{JOBS}/{dry_run}/events", f"{DRY_RUNS}/{job}"):
        error_of(http.get(path), 404)
    for action in ("cancel", "pause", "resume"):
        error_of(http.post(f"{JOBS}/{dry_run}/{action}"), 404)
    assert error_of(http.get(f"{DRY_RUNS}/{job}"), 404)["code"] == "dry_run_not_found"


def test_pages_of_dry_runs(http: httpx.Client, file_id: str) -> None:
    made = [start(http, file_id)["id"] for _ in range(3)]
    first = http.get(DRY_RUNS, params={"limit": 2}).json()
    assert ([each["id"] for each in first["data"]], first["has_more"]) == (made[:0:-1], True)
    rest = http.get(DRY_RUNS, params={"after": made[1]}).json()
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (made[:1], False)


def test_cancelling(http: httpx.Client, file_id: str, sessions: sessionmaker[Session]) -> None:
    made = start(http, file_id)["id"]
    assert http.post(f"{DRY_RUNS}/{made}/cancel").json()["status"] == "cancelled"
    error = error_of(http.post(f"{DRY_RUNS}/{made}/cancel"), 400)
    assert error["code"] == "invalid_job_state"
    done = start(http, file_id)["id"]
    succeed(sessions, done)
    error_of(http.post(f"{DRY_RUNS}/{done}/cancel"), 400)


def test_a_failed_one_says_why(
    http: httpx.Client, file_id: str, sessions: sessionmaker[Session]
) -> None:
    made = start(http, file_id)["id"]
    error = {"code": "invalid_grader", "message": "It does not fit.", "param": None}
    with sessions.begin() as session:
        transition(session, made, "failed", error=error)
    shown = http.get(f"{DRY_RUNS}/{made}").json()
    assert (shown["status"], shown["error"]) == ("failed", error)


def test_a_job_may_name_a_dry_run(
    http: httpx.Client, client: openai.OpenAI, file_id: str, sessions: sessionmaker[Session]
) -> None:
    made = start(http, file_id)["id"]

    def create(name: str) -> httpx.Response:
        method = reinforcement(dry_run=name, allow_no_spread=True)
        return http.post(JOBS, json=job_body(file_id, method=method))

    error = error_of(create(made), 400)
    assert error["param"] == "method.reinforcement.dry_run"
    assert "validating_files and has no report" in error["message"]
    error_of(create("dryrun-x"), 400)
    succeed(sessions, made)
    job = create(made).json()
    assert job["method"]["reinforcement"]["dry_run"] == made
    assert job["method"]["reinforcement"]["allow_no_spread"] is True
    # The official client in strict mode takes the job with the further fields.
    assert client.fine_tuning.jobs.retrieve(job["id"]).id == job["id"]
    error_of(create(job["id"]), 400)


def test_a_dry_run_of_another_project_cannot_be_named(
    http: httpx.Client,
    api: Api,
    file_id: str,
    sessions: sessionmaker[Session],
    client_for: ClientFor,
    new_key: Any,
) -> None:
    made = start(http, file_id)["id"]
    succeed(sessions, made)
    key = new_key()
    theirs = upload(client_for(key), ROWS)
    response = httpx.post(
        api.url + JOBS,
        json=job_body(theirs.id, method=reinforcement(dry_run=made)),
        headers={"authorization": f"Bearer {key}"},
    )
    assert "No such dry run in this project" in error_of(response, 400)["message"]


def test_a_model_that_a_dry_run_needs_is_kept(
    http: httpx.Client, client: openai.OpenAI, file_id: str, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(file_id))
    set_status(sessions, job.id, "succeeded")
    with sessions.begin() as session:
        session.get_one(Job, job.id).hyperparameters = {"lora_rank": 16}
    add_checkpoint(sessions, job.id, 4, name="ft:base-1-2024:a")
    made = start(http, file_id, model="ft:base-1-2024:a")
    assert made["model"] == "ft:base-1-2024:a"
    assert made["method"]["reinforcement"]["hyperparameters"]["lora_rank"] == 16
    error = error_of(http.delete("/v1/models/ft:base-1-2024:a"), 400)
    assert made["id"] in error["message"]

"""What a new job writes, and everything that is refused before one is written."""

from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core.models import Checkpoint, Event, File, Job, Outbox
from tests.api.examples import (
    GRADER,
    METHOD,
    add_checkpoint,
    error_of,
    job_body,
    reinforcement,
    set_status,
    upload,
)
from tests.api.running import ClientFor

MULTI = {
    "type": "multi",
    "name": "both",
    "graders": [{**GRADER, "name": "a"}, {**GRADER, "name": "b"}],
    "calculate_output": "0.5 * a + 0.5 * b",
}


def test_job_event_and_wake_up_are_written_together(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    made = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    with sessions() as session:
        job = session.get_one(Job, made.id)
        events = session.scalars(select(Event)).all()
        outbox = session.scalars(select(Outbox)).all()
    assert job.status == "validating_files"
    assert [event.message for event in events] == [f"Created fine-tuning job: {made.id}"]
    assert [(row.kind, row.payload) for row in outbox] == [("wake", {"queue": "light"})]


def test_a_refused_job_writes_nothing(http: httpx.Client, sessions: sessionmaker[Session]) -> None:
    assert http.post("/v1/fine_tuning/jobs", json=job_body("file-none")).status_code == 400
    with sessions() as session:
        assert not session.scalars(select(Job)).all()
        assert not session.scalars(select(Outbox)).all()


def test_a_multi_grader_list_is_shown_as_a_map(client: openai.OpenAI, http: httpx.Client) -> None:
    body = job_body(upload(client).id, method=reinforcement(grader=MULTI))
    made = http.post("/v1/fine_tuning/jobs", json=body).json()
    grader = made["method"]["reinforcement"]["grader"]
    assert list(grader["graders"]) == ["a", "b"]
    assert grader["calculate_output"] == MULTI["calculate_output"]


def test_a_schema_grader_and_a_response_format_are_shown_as_sent(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": ["string", "null"]}},
    }
    grader = {"type": "json_schema", "name": "form", "schema": schema}
    wanted = {"type": "json_schema", "json_schema": {"name": "o", "strict": True, "schema": schema}}
    method = reinforcement(grader=grader, response_format=wanted)
    made = http.post("/v1/fine_tuning/jobs", json=job_body(upload(client).id, method=method)).json()
    shown = made["method"]["reinforcement"]
    assert shown["grader"].items() >= grader.items()
    assert shown["response_format"] == wanted


def test_a_shown_method_can_be_sent_again(client: openai.OpenAI, http: httpx.Client) -> None:
    file = upload(client)
    first = http.post("/v1/fine_tuning/jobs", json=job_body(file.id)).json()
    again = job_body(file.id, method=first["method"])
    assert http.post("/v1/fine_tuning/jobs", json=again).json()["method"] == first["method"]


def test_hyperparameters_beside_the_method_are_honoured(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    body = job_body(upload(client).id, hyperparameters={"n_epochs": 3, "batch_size": "auto"})
    made = http.post("/v1/fine_tuning/jobs", json=body).json()
    assert made["hyperparameters"]["n_epochs"] == 3
    assert made["method"]["reinforcement"]["hyperparameters"]["n_epochs"] == 3
    body["method"] = reinforcement(hyperparameters={"n_epochs": 2})
    error = error_of(http.post("/v1/fine_tuning/jobs", json=body), 400)
    assert error["param"] == "hyperparameters.n_epochs"
    assert "differ" in error["message"]


def test_blocks_beside_the_chosen_method_are_ignored(client: openai.OpenAI) -> None:
    method = {**METHOD, "supervised": {"hyperparameters": {"n_epochs": 1}}, "dpo": {}}
    made = client.fine_tuning.jobs.create(**job_body(upload(client).id, method=method))
    assert made.method is not None and made.method.supervised is None


def test_a_trained_model_is_trained_further(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    file = upload(client)
    first = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, first.id, 8, name="ft:base-1-2024:org-rft::12345678")
    second = client.fine_tuning.jobs.create(
        **job_body(file.id, model="ft:base-1-2024:org-rft::12345678")
    )
    assert second.model == "ft:base-1-2024:org-rft::12345678"
    with sessions() as session:
        row = session.get_one(Job, second.id)
        assert (row.model, row.init_from) == ("base-1-2024", second.model)


@pytest.mark.parametrize(("asked", "kept"), [(None, 16), (16, 16), (0, 0)])
def test_an_adapter_goes_on_at_its_own_rank(
    client: openai.OpenAI, sessions: sessionmaker[Session], asked: int | None, kept: int
) -> None:
    file = upload(client)
    first = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, first.id, 8, name="ft:a")
    with sessions.begin() as session:
        session.get_one(Job, first.id).hyperparameters = {"lora_rank": 16}
    given = {} if asked is None else {"lora_rank": asked}
    method = reinforcement(hyperparameters=given)
    second = client.fine_tuning.jobs.create(**job_body(file.id, model="ft:a", method=method))
    with sessions() as session:
        assert session.get_one(Job, second.id).hyperparameters["lora_rank"] == kept


@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_another_rank_than_the_trained_one_is_refused(
    client: openai.OpenAI, sessions: sessionmaker[Session], kind: str
) -> None:
    file = upload(client)
    first = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, first.id, 8, name="ft:a")
    with sessions.begin() as session:
        session.get_one(Job, first.id).hyperparameters = {"lora_rank": 16}
        session.execute(update(Checkpoint).values(kind=kind))
    method = reinforcement(hyperparameters={"lora_rank": 8})
    rank = 16 if kind == "adapter" else 0
    with pytest.raises(openai.BadRequestError, match=f"ft:a was trained with lora_rank {rank}"):
        client.fine_tuning.jobs.create(**job_body(file.id, model="ft:a", method=method))


def test_a_warm_start_file_is_recorded(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    file = upload(client)
    method = reinforcement(warm_start={"file": file.id, "epochs": 4})
    made = client.fine_tuning.jobs.create(**job_body(file.id, method=method))
    with sessions() as session:
        assert session.get_one(Job, made.id).warm_start_file == file.id


Refusal = tuple[dict[str, Any], str, str | None, str | None]

REFUSALS: dict[str, Refusal] = {
    "unknown model": (
        {"model": "bse-1"},
        "Model bse-1 is not available for fine-tuning or does not exist. Did you mean 'base-1'?",
        None,
        "model_not_available",
    ),
    "unknown training file": (
        {"training_file": "file-x"},
        "invalid training_file: file-x",
        "training_file",
        None,
    ),
    "unknown validation file": (
        {"validation_file": "file-x"},
        "invalid validation_file: file-x",
        "validation_file",
        None,
    ),
    "unknown warm start file": (
        {"method": reinforcement(warm_start={"file": "file-x"})},
        "invalid warm_start.file: file-x",
        "method.reinforcement.warm_start.file",
        None,
    ),
    "beta out of range": (
        {"method": {"type": "dpo", "dpo": {"hyperparameters": {"beta": 3}}}},
        "must be 'auto' or a number above 0 and at most 2, not 3",
        "method.dpo.hyperparameters.beta",
        "invalid_value",
    ),
    "quantization of full weights": (
        {
            "method": {
                "type": "supervised",
                "supervised": {"hyperparameters": {"quantization": "nf4", "lora_rank": 0}},
            }
        },
        "4-bit weights cannot be trained; set lora_rank",
        "method.supervised.hyperparameters.quantization",
        "invalid_value",
    ),
    "unknown method": (
        {"method": {"type": "ppo"}},
        "Invalid value for 'method.type'",
        "method.type",
        "invalid_value",
    ),
    "no block": (
        {"method": {"type": "reinforcement"}},
        "Missing required parameter: 'method.reinforcement'",
        "method.reinforcement",
        "missing_required_parameter",
    ),
    "no grader": (
        {"method": {"type": "reinforcement", "reinforcement": {}}},
        "Missing required parameter: 'method.reinforcement.grader'",
        "method.reinforcement.grader",
        "missing_required_parameter",
    ),
    "unknown grader": (
        {"method": reinforcement(grader={"type": "magic", "name": "g"})},
        "Unknown grader type 'magic'",
        "method.reinforcement.grader.type",
        "invalid_grader",
    ),
    "bad formula": (
        {"method": reinforcement(grader={**MULTI, "calculate_output": "a +"})},
        "column",
        "method.reinforcement.grader.calculate_output",
        "formula_parse_error",
    ),
    "hyperparameter out of range": (
        {"method": reinforcement(hyperparameters={"batch_size": 257})},
        "must be 'auto' or an integer from 1 to 256, not 257",
        "method.reinforcement.hyperparameters.batch_size",
        "invalid_value",
    ),
    "hyperparameter of the wrong type": (
        {"hyperparameters": {"n_epochs": "many"}},
        "Invalid value for 'hyperparameters.n_epochs'",
        "hyperparameters.n_epochs",
        "invalid_value",
    ),
    "two warm start sources": (
        {"method": reinforcement(warm_start={"file": "f", "reference_field": "answer"})},
        "exactly one of 'file' and 'reference_field'",
        "method.reinforcement.warm_start",
        "invalid_value",
    ),
    "remote reference in a response format": (
        {
            "method": reinforcement(
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "o", "schema": {"$ref": "http://169.254.169.254/"}},
                }
            )
        },
        "169.254.169.254/' is not allowed",
        "method.reinforcement.response_format",
        "invalid_value",
    ),
    "more tokens than the model holds": (
        {"method": reinforcement(hyperparameters={"max_completion_tokens": 4096})},
        "holds 2048 tokens",
        "method.reinforcement.hyperparameters.max_completion_tokens",
        "invalid_value",
    ),
    "integration": (
        {"integrations": [{"type": "wandb", "wandb": {"project": "p"}}]},
        "Integration 'wandb' is not available",
        "integrations",
        "unsupported_integration",
    ),
    "suffix": ({"suffix": "a:b"}, "Invalid value for 'suffix'", "suffix", "invalid_value"),
    "long suffix": ({"suffix": "a" * 65}, "Invalid value for 'suffix'", "suffix", "invalid_value"),
    "seed": ({"seed": 2**31}, "Invalid value for 'seed'", "seed", "invalid_value"),
    "seed as text": ({"seed": "7"}, "Invalid value for 'seed'", "seed", "invalid_value"),
    "too much metadata": (
        {"metadata": {str(n): "" for n in range(17)}},
        "at most 16 pairs",
        "metadata",
        "invalid_value",
    ),
    "long metadata": (
        {"metadata": {"k": "v" * 513}},
        "at most 512 characters",
        "metadata",
        "invalid_value",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, client: openai.OpenAI, http: httpx.Client) -> None:
    changes, message, param, code = REFUSALS[case]
    body = job_body(upload(client).id) | changes
    body = {name: value for name, value in body.items() if value is not None}
    response = http.post("/v1/fine_tuning/jobs", json=body)
    error = error_of(response, 400)
    assert message in error["message"]
    assert (error["param"], error["code"]) == (param, code)
    assert response.headers["x-should-retry"] == "false"


def test_everything_wrong_is_said_at_once(http: httpx.Client) -> None:
    error = error_of(http.post("/v1/fine_tuning/jobs", json={"seed": -1, "suffix": ""}), 400)
    for name in ("model", "training_file", "seed", "suffix"):
        assert f"'{name}'" in error["message"]
    assert error["param"] == "model"


def test_files_that_cannot_train(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    good = upload(client)
    deleted, expired, pending = (upload(client) for _ in range(3))
    client.files.delete(deleted.id)
    with sessions.begin() as session:
        session.get_one(File, expired.id).expires_at = 1
        session.get_one(File, pending.id).status = "uploaded"
    other = client.files.create(file=b"x", purpose="user_data")
    for file, message in (
        (deleted, "deleted or has expired; upload it again"),
        (expired, "deleted or has expired; upload it again"),
        (other, "Its purpose is 'user_data'"),
        (pending, "is still being processed and is not ready"),
    ):
        error = error_of(http.post("/v1/fine_tuning/jobs", json=job_body(file.id)), 400)
        assert message in error["message"] and file.id in error["message"]
        assert error["param"] == "training_file"
    same = job_body(good.id, validation_file=upload(client).id)
    error = error_of(http.post("/v1/fine_tuning/jobs", json=same), 400)
    assert "same content" in error["message"]


def test_a_deleted_model_cannot_be_trained_further(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    file = upload(client)
    job = client.fine_tuning.jobs.create(**job_body(file.id))
    add_checkpoint(sessions, job.id, 8, name="ft:gone")
    set_status(sessions, job.id, "succeeded")
    client.models.delete("ft:gone")
    body = job_body(file.id, model="ft:gone")
    assert error_of(http.post("/v1/fine_tuning/jobs", json=body), 400)["code"] == (
        "model_not_available"
    )


def test_another_projects_files_and_models_do_not_exist(
    client: openai.OpenAI,
    client_for: ClientFor,
    new_key: Callable[..., str],
    sessions: sessionmaker[Session],
) -> None:
    other = client_for(new_key())
    theirs = upload(other)
    job = other.fine_tuning.jobs.create(**job_body(theirs.id))
    add_checkpoint(sessions, job.id, 8, name="ft:theirs")
    with pytest.raises(openai.BadRequestError, match="invalid training_file"):
        client.fine_tuning.jobs.create(**job_body(theirs.id))
    with pytest.raises(openai.BadRequestError, match="ft:theirs is not available"):
        client.fine_tuning.jobs.create(**job_body(upload(client).id, model="ft:theirs"))

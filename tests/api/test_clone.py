"""Cloning a job: the same again, with changes merged in and checked as a new job's."""

from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import Job
from graders.masking import MASK
from tests.api.examples import GRADER, error_of, job_body, reinforcement, upload

ENDPOINT = {
    "type": "endpoint",
    "name": "e",
    "url": "https://example.com/grade",
    "headers": {"x-key": "secret"},
}
HYPERPARAMETERS = {"max_steps": 40, "group_size": 8}
JOBS = "/v1/fine_tuning/jobs"


@pytest.fixture
def source(client: openai.OpenAI, http: httpx.Client) -> dict[str, Any]:
    body = job_body(
        upload(client).id,
        validation_file=upload(client, [{"messages": [{"role": "user", "content": "?"}]}] * 3).id,
        method=reinforcement(
            hyperparameters=HYPERPARAMETERS, warm_start={"reference_field": "answer", "epochs": 2}
        ),
        suffix="first",
        seed=7,
        metadata={"team": "a", "run": "1"},
    )
    answer = http.post(JOBS, json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def clone(http: httpx.Client, source: dict[str, Any], **changes: Any) -> dict[str, Any]:
    answer = http.post(f"{JOBS}/{source['id']}/clone", json=changes)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_without_changes_the_same_job_is_made(http: httpx.Client, source: dict[str, Any]) -> None:
    answer = http.post(f"{JOBS}/{source['id']}/clone")
    made = answer.json()
    own = ("id", "created_at", "cloned_from", "eval_id")
    assert {k: v for k, v in made.items() if k not in own} == {
        k: v for k, v in source.items() if k not in own
    }
    assert (made["cloned_from"], source["cloned_from"]) == (source["id"], None)
    assert http.get(f"{JOBS}/{made['id']}").json()["cloned_from"] == source["id"]


def test_an_offline_job_is_cloned(client: openai.OpenAI, http: httpx.Client) -> None:
    method = {"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.2, "n_epochs": 2}}}
    first = http.post(JOBS, json=job_body(upload(client).id, method=method)).json()
    made = clone(http, first, hyperparameters={"n_epochs": 3})
    values = made["method"]["dpo"]["hyperparameters"]
    assert (values["beta"], values["n_epochs"]) == (0.2, 3)


def test_changes_are_merged_key_by_key(http: httpx.Client, source: dict[str, Any]) -> None:
    made = clone(
        http,
        source,
        suffix="second",
        method=reinforcement(
            grader={"operation": "ilike"}, hyperparameters={"max_steps": 5}, warm_start=None
        ),
        metadata={"run": "2"},
        validation_file=None,
    )
    block = made["method"]["reinforcement"]
    assert (block["grader"]["operation"], block["grader"]["name"]) == ("ilike", GRADER["name"])
    assert (block["hyperparameters"]["max_steps"], block["hyperparameters"]["group_size"]) == (5, 8)
    assert "warm_start" not in block
    assert made["metadata"] == {"team": "a", "run": "2"}
    assert (made["validation_file"], made["seed"]) == (None, 7)
    assert made["user_provided_suffix"] == "second"


def test_hyperparameters_beside_the_method_stand_above_the_sources(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    method = reinforcement(hyperparameters={"n_epochs": 3, "max_steps": 9})
    source = http.post(JOBS, json=job_body(upload(client).id, method=method)).json()
    made = clone(http, source, hyperparameters={"n_epochs": 1})
    values = made["method"]["reinforcement"]["hyperparameters"]
    assert (values["n_epochs"], values["max_steps"]) == (1, 9)
    both = {
        "hyperparameters": {"n_epochs": 1},
        "method": reinforcement(hyperparameters={"n_epochs": 2}),
    }
    error = error_of(http.post(f"{JOBS}/{source['id']}/clone", json=both), 400)
    assert error["param"] == "hyperparameters.n_epochs"


def test_a_grader_of_another_type_replaces_the_sources(
    http: httpx.Client, source: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"a": {"const": None}}}
    grader = {"type": "json_schema", "name": "form", "schema": schema}
    made = clone(http, source, method={"reinforcement": {"grader": grader}})
    assert made["method"]["reinforcement"]["grader"].items() >= grader.items()


def test_secrets_of_the_grader_are_kept_and_never_shown(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    body = job_body(upload(client).id, method=reinforcement(grader=ENDPOINT))
    source = http.post(JOBS, json=body).json()
    assert source["method"]["reinforcement"]["grader"]["headers"] == {"x-key": MASK}
    made = clone(http, source, method=source["method"])
    assert made["method"] == source["method"]
    with sessions() as session:
        row = session.get_one(Job, made["id"])
    assert row.method["reinforcement"]["grader"]["headers"] == {"x-key": "secret"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sufix": "x"}, "'sufix' (did you mean 'suffix'?)"),
    (
        {"method": reinforcement(hyperparameters={"max_step": 1})},
        "'method.reinforcement.hyperparameters.max_step' (did you mean",
    ),
    ({"hyperparameters": {"epochs": 1}}, "'hyperparameters.epochs' (did you mean"),
    ({"model": "nope"}, "Model nope is not available"),
    ({"training_file": "file-none"}, "invalid training_file: file-none"),
    ({"model": None}, "Missing required parameter: 'model'"),
    ({"method": {"type": "reinforce"}}, "method.type"),
    ({"suffix": "a:b"}, "suffix"),
]


def test_what_no_job_may_have_is_refused(http: httpx.Client, source: dict[str, Any]) -> None:
    for changes, said in REFUSED:
        error = error_of(http.post(f"{JOBS}/{source['id']}/clone", json=changes), 400)
        assert said in error["message"], changes
    assert len(http.get(JOBS).json()["data"]) == 1

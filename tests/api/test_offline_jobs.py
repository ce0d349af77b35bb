"""Jobs of methods without a grader: supervised ones and preferences."""

from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import Job
from tests.api.examples import add_checkpoint, error_of, job_body, upload

SENT = {"batch_size": 4, "learning_rate_multiplier": 0.5, "n_epochs": 2}


def test_a_job_without_method_is_supervised(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    body = job_body(upload(client).id, method=None, hyperparameters=SENT)
    made = client.fine_tuning.jobs.create(**body)
    assert made.method is not None and made.method.type == "supervised"
    assert made.hyperparameters.to_dict() == SENT
    shown = http.get(f"/v1/fine_tuning/jobs/{made.id}").json()
    assert shown["method"]["supervised"]["hyperparameters"].items() >= SENT.items()
    # An eval shows what a grader made of validation samples; this job has neither.
    assert shown["eval_id"] is None
    with sessions() as session:
        assert session.get_one(Job, made.id).hyperparameters["lora_rank"] == "auto"


@pytest.mark.parametrize(
    ("kind", "own"), [("supervised", {}), ("dpo", {"beta": 0.2})], ids=["supervised", "dpo"]
)
def test_the_sdk_makes_offline_jobs(client: openai.OpenAI, kind: str, own: dict[str, Any]) -> None:
    method = {"type": kind, kind: {"hyperparameters": {**SENT, **own}}}
    made = client.fine_tuning.jobs.create(**job_body(upload(client).id, method=method))
    assert made.method is not None and made.method.type == kind
    block = getattr(made.method, kind)
    assert block.hyperparameters.to_dict().items() >= {**SENT, **own}.items()
    assert client.fine_tuning.jobs.retrieve(made.id).method == made.method


def test_a_shown_offline_method_can_be_sent_again(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    file = upload(client)
    method = {"type": "dpo", "dpo": {"limits": {"max_tokens": 1000}}}
    first = http.post("/v1/fine_tuning/jobs", json=job_body(file.id, method=method)).json()
    again = job_body(file.id, method=first["method"])
    assert http.post("/v1/fine_tuning/jobs", json=again).json()["method"] == first["method"]


def test_an_adapter_goes_on_in_another_method(
    client: openai.OpenAI, sessions: sessionmaker[Session]
) -> None:
    """Preferences are mostly learnt after demonstrations; the adapter goes on as it is."""
    file = upload(client)
    first = client.fine_tuning.jobs.create(**job_body(file.id, method={"type": "supervised"}))
    add_checkpoint(sessions, first.id, 8, name="ft:a")
    kept = {"lora_rank": 8, "lora_alpha": 32.0, "lora_targets": ["q_proj"]}
    with sessions.begin() as session:
        session.get_one(Job, first.id).hyperparameters = kept
    body = job_body(file.id, model="ft:a", method={"type": "dpo"})
    second = client.fine_tuning.jobs.create(**body)
    with sessions() as session:
        assert session.get_one(Job, second.id).hyperparameters.items() >= kept.items()
    body["method"] = {"type": "dpo", "dpo": {"hyperparameters": {"lora_targets": ["v_proj"]}}}
    with pytest.raises(openai.BadRequestError, match="with lora_targets q_proj") as refusal:
        client.fine_tuning.jobs.create(**body)
    assert refusal.value.param == "method.dpo.hyperparameters.lora_targets"


def test_samples_of_a_job_without_grader_cannot_be_asked_for_one(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    made = client.fine_tuning.jobs.create(**job_body(upload(client).id, method=None))
    samples = f"/v1/fine_tuning/jobs/{made.id}/samples"
    assert http.get(samples).json()["data"] == []
    error = error_of(http.get(samples, params={"grader": "exact"}), 400)
    assert "method 'supervised' has no grader" in error["message"]


def test_a_dry_run_of_a_method_without_grader_is_refused(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    body = job_body(upload(client).id, method={"type": "dpo"})
    error = error_of(http.post("/v1/fine_tuning/dry_runs", json=body), 400)
    assert (error["param"], error["code"]) == ("method.type", "unsupported_method")


@pytest.mark.parametrize("kind", ["supervised", "dpo"])
def test_metrics_are_those_of_the_jobs_own_steps(
    client: openai.OpenAI, http: httpx.Client, kind: str
) -> None:
    made = client.fine_tuning.jobs.create(**job_body(upload(client).id, method={"type": kind}))
    assert http.get(f"/v1/fine_tuning/jobs/{made.id}/metrics").json()["phase"] == kind

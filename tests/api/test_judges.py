"""Graders that ask others: refused at creation when they cannot, and their secrets not shown."""

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from bench.fake_judge import FakeJudge
from core.models import Job
from core.settings import Settings
from graders.masking import MASK
from tests.api.examples import error_of, job_body, reinforcement, upload
from tests.graders.judging import score_model

ENDPOINT: dict[str, Any] = {
    "type": "endpoint",
    "name": "mine",
    "url": "https://grader.example.com/",
    "headers": {"Authorization": "Bearer very-secret"},
}
LABEL: dict[str, Any] = {
    "type": "label_model",
    "name": "tone",
    "model": "base-1",
    "labels": ["a", "b"],
    "passing_labels": ["a"],
    "input": [{"role": "user", "content": "x"}],
}


def create(http: httpx.Client, client: openai.OpenAI, grader: dict[str, Any]) -> httpx.Response:
    body = job_body(upload(client).id, method=reinforcement(grader=grader))
    return http.post("/v1/fine_tuning/jobs", json=body)


@pytest.fixture
def judge() -> Any:
    with FakeJudge(['{"result": 0.75}']) as server:
        yield server


@pytest.fixture
def settings(settings: Settings, judge: FakeJudge, tmp_path: Path) -> Settings:
    path = tmp_path / "judges.toml"
    path.write_text(f'[[judges]]\nmodel = "gpt-4.1-mini"\nbase_url = "{judge.base_url}"\n')
    return settings.model_copy(update={"judges_file": path})


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "base-1", "base-1-2024"])
def test_configured_judges_and_base_models_are_taken(
    model: str, client: openai.OpenAI, http: httpx.Client
) -> None:
    made = create(http, client, score_model(model=model))
    assert made.status_code == 200
    assert made.json()["method"]["reinforcement"]["grader"]["model"] == model


def test_unknown_judge_is_refused_with_those_that_are_known(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    error = error_of(create(http, client, score_model(model="gpt-9")), 400)
    assert error["param"] == "method.reinforcement.grader.model"
    assert "Unknown judge 'gpt-9'; known: base-1, base-1-2024, gpt-4.1-mini" in error["message"]
    for path in ("validate", "run"):
        body = {"grader": score_model(model="gpt-9"), "model_sample": "x"}
        if path == "validate":
            del body["model_sample"]
        answer = http.post(f"/v1/fine_tuning/alpha/graders/{path}", json=body)
        assert "Unknown judge 'gpt-9'" in error_of(answer, 400)["message"]


def test_url_inside_the_network_is_refused(client: openai.OpenAI, http: httpx.Client) -> None:
    error = error_of(create(http, client, {**ENDPOINT, "url": "https://169.254.169.254/"}), 400)
    assert error["param"] == "method.reinforcement.grader.url"
    assert "RFT_OUTBOUND_HOSTS" in error["message"]


def test_headers_are_masked_in_every_answer_and_kept_for_the_grader(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    multi = {"type": "multi", "name": "m", "graders": {"e": ENDPOINT}, "calculate_output": "e"}
    made = create(http, client, multi)
    job_id = made.json()["id"]
    answers = [
        made,
        http.get(f"/v1/fine_tuning/jobs/{job_id}"),
        http.get("/v1/fine_tuning/jobs"),
        http.get(f"/v1/fine_tuning/jobs/{job_id}/events"),
        http.post(f"/v1/fine_tuning/jobs/{job_id}/pause", json={}),
        http.post(f"/v1/fine_tuning/jobs/{job_id}/cancel", json={}),
        http.post("/v1/fine_tuning/alpha/graders/validate", json={"grader": multi}),
    ]
    for answer in answers:
        assert "very-secret" not in answer.text
    shown = made.json()["method"]["reinforcement"]["grader"]["graders"]["e"]
    assert shown["headers"] == {"Authorization": MASK}
    with sessions() as session:
        kept = json.dumps(session.get_one(Job, job_id).method)
    assert "very-secret" in kept


def test_masked_value_that_comes_back_is_refused(client: openai.OpenAI, http: httpx.Client) -> None:
    shown = create(http, client, ENDPOINT).json()["method"]["reinforcement"]["grader"]
    error = error_of(create(http, client, shown), 400)
    assert error["param"] == "method.reinforcement.grader.headers.Authorization"
    assert "masked; send the header's real one" in error["message"]


def test_label_model_stands_in_a_multi_only(client: openai.OpenAI, http: httpx.Client) -> None:
    error = error_of(create(http, client, LABEL), 400)
    assert "inside a multi grader only" in error["message"]
    multi = {"type": "multi", "name": "m", "graders": {"l": LABEL}, "calculate_output": "l"}
    assert create(http, client, multi).status_code == 200


def test_grader_can_be_tried_with_its_judge(http: httpx.Client, judge: FakeJudge) -> None:
    body = {"grader": score_model(model="gpt-4.1-mini"), "model_sample": "fine"}
    answer = http.post("/v1/fine_tuning/alpha/graders/run", json=body).json()
    assert answer["reward"] == 0.75
    assert answer["metadata"]["sampled_model_name"] == "gpt-4.1-mini"
    assert answer["metadata"]["token_usage"] == 18
    assert len(judge.requests) == 1

"""The examples of docs/evals.md do what the page says; its tables name what there is."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session, sessionmaker

from api.routes import evals
from core.evals import criterion_of, threshold
from core.settings import Settings
from core.store import ObjectStore
from graders.spec import parse_grader
from tests.evals.bench import Worker
from tests.fakes.model_server import ModelServer

PAGE = (Path(__file__).parents[2] / "docs" / "evals.md").read_text()


def blocks(language: str) -> list[str]:
    """The examples in one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def made(http: httpx.Client) -> dict[str, Any]:
    """The eval of the first example."""
    response = http.post("/v1/evals", json=json.loads(blocks("json")[0]))
    assert response.status_code == 201, response.text
    eval_of_page: dict[str, Any] = response.json()
    return eval_of_page


def test_runs_of_the_page_come_to_their_end(
    http: httpx.Client,
    made: dict[str, Any],
    settings: Settings,
    sessions: sessionmaker[Session],
    store: ObjectStore,
    model_server: ModelServer,
) -> None:
    worker = Worker(settings, sessions, store, model_server.transport)
    counts = []
    for body in blocks("json")[1:]:
        run = http.post(f"/v1/evals/{made['id']}/runs", json=json.loads(body))
        assert run.status_code == 201, run.text
        worker.work()
        shown = http.get(f"/v1/evals/{made['id']}/runs/{run.json()['id']}").json()
        assert shown["status"] == "completed"
        counts.append((shown["result_counts"]["passed"], shown["result_counts"]["failed"]))
    # The fake model says `Hello` to everything; the sample that is there is right.
    assert counts == [(0, 2), (1, 0)]


def test_an_eval_is_brought_over(client: openai.OpenAI, made: dict[str, Any]) -> None:
    namespace: dict[str, Any] = {}
    exec(blocks("python")[0], namespace)
    brought = namespace["bring"](client, client, made["id"])
    assert brought.id != made["id"]
    assert brought.name == made["name"]
    assert len(brought.testing_criteria) == 3


def test_the_tables_name_every_route() -> None:
    for route in evals.router.routes:
        assert isinstance(route, APIRoute)
        for method in route.methods:
            assert f"`{method} {route.path}`" in PAGE


def test_thresholds_are_those_of_the_page() -> None:
    message = [{"role": "user", "content": "{{sample.output_text}}"}]
    judge = {"type": "score_model", "name": "s", "model": "m", "input": message, "range": [2, 6]}
    python = {"type": "python", "name": "p", "source": "def grade(sample, item): return 1"}
    pattern = {"type": "regex", "name": "r", "pattern": "x"}
    shown = [threshold(criterion_of(parse_grader(each))) for each in (judge, python, pattern)]
    assert shown == [4.0, 0.5, 1.0]

"""The curves of a job's metrics, over plain HTTP."""

from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session, sessionmaker

from api.services import metrics
from api.services.series_rows import Window
from api.tenancy import Tenant
from core import series
from core.keys import create_project
from core.models import Job, Metric, MetricPoint, MetricSeries
from tests.api.examples import METHOD, error_of, job_body, upload


def data(step: int) -> dict[str, Any]:
    return {
        "phase": "rl",
        "step": step,
        "train_mean_reward": step / 10,
        "full_valid_mean_reward": 0.5 if step % 5 == 0 else None,
        "odd": {"a, b": 1},
        "scores": {"graders": [{"name": "exact", "type": "x", "train_reward_mean": 1.0}]},
        "timing": {"step": {"sampling": 2}},
        "histogram": [1, 2, 3],
    }


def record(session: Session, job_id: str, *steps: int, phase: str = "rl") -> None:
    for step in steps:
        session.add(Metric(job_id=job_id, phase=phase, step=step, data=data(step)))
        series.record(session, job_id, phase, step, data(step))


@pytest.fixture
def path(client: openai.OpenAI, sessions: sessionmaker[Session]) -> str:
    """Where the metrics of a job with 20 steps are read."""
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    with sessions.begin() as session:
        record(session, job.id, *range(1, 21))
    return f"/v1/fine_tuning/jobs/{job.id}/metrics"


def read(http: httpx.Client, path: str, **params: Any) -> dict[str, Any]:
    answer = http.get(path, params=params or None)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_without_names_the_headlines_are_shown(http: httpx.Client, path: str) -> None:
    body = read(http, path)
    assert [each["name"] for each in body["series"]] == [
        "train_mean_reward",
        "full_valid_mean_reward",
    ]
    assert body["available"] == [
        "full_valid_mean_reward",
        "odd.a, b",
        "scores.graders.exact.train_reward_mean",
        "step",
        "timing.step.sampling",
        "train_mean_reward",
    ]
    assert body["phases"] == [{"phase": "rl", "steps": 20, "first_step": 1, "last_step": 20}]
    rewards, valid = body["series"]
    assert rewards["points"] == [[step, step / 10] for step in range(1, 21)]
    assert rewards["lowest"] == {"step": 1, "value": 0.1}
    assert (valid["steps"], valid["gaps"], valid["downsampled"]) == (20, 16, False)
    assert valid["points"][3:6] == [[4, None], [5, 0.5], [6, None]]


def test_names_come_in_one_list_or_several(http: httpx.Client, path: str) -> None:
    for names in ("step,timing.step.sampling", ["step", "timing.step.sampling"]):
        found = read(http, path, names=names)["series"]
        assert [each["name"] for each in found] == ["step", "timing.step.sampling"]
        assert found[1]["points"][0] == [1, 2.0]
    odd = read(http, path, names=["odd.a, b", "step"])["series"]
    assert [each["name"] for each in odd] == ["odd.a, b", "step"]
    many = ",".join(f"n{number}" for number in range(51))
    assert "51 names" in error_of(http.get(f"{path}?names={many}"), 400)["message"]


def test_fewer_points_and_a_window(http: httpx.Client, path: str) -> None:
    few = read(http, path, names="train_mean_reward", max_points=5)["series"][0]
    assert few["points"] == [[1, 0.1], [20, 2.0]]
    assert few["downsampled"] and few["steps"] == 20
    part = read(http, path, names="train_mean_reward", min_step=19)["series"][0]
    assert part["points"] == [[19, 1.9], [20, 2.0]]
    assert read(http, path, names="step", min_step=30)["series"][0]["points"] == []


UNKNOWN = [
    ("names=train_mean_rewrd", "'train_mean_rewrd' (did you mean 'train_mean_reward'?)"),
    ("names=step,zzz,yyy", "Unknown metrics of phase 'rl': 'zzz', 'yyy'."),
    ("phase=rll", "Did you mean 'rl'? It has: rl."),
    ("max_points=4", "max_points"),
    ("max_point=100", "Did you mean 'max_points'?"),
]


def test_what_is_unknown_is_named(http: httpx.Client, path: str) -> None:
    for query, said in UNKNOWN:
        assert said in error_of(http.get(f"{path}?{query}"), 400)["message"], query


def test_a_job_without_metrics_has_no_curves(client: openai.OpenAI, http: httpx.Client) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    body = read(http, f"/v1/fine_tuning/jobs/{job.id}/metrics")
    assert (body["series"], body["available"], body["phases"]) == ([], [], [])
    [curve] = read(http, f"/v1/fine_tuning/jobs/{job.id}/metrics?names=train_mean_reward")["series"]
    assert (curve["name"], curve["points"], curve["steps"]) == ("train_mean_reward", [], 0)


@pytest.fixture
def tenant(factory: sessionmaker[Session]) -> Tenant:
    """A project with a job of 30 steps, on either database."""
    with factory.begin() as session:
        project = create_project(session, "p").id
        session.add(
            Job(
                id="ftjob-1",
                project_id=project,
                model="m",
                method=METHOD,
                training_file="file-1",
                seed=1,
            )
        )
        session.flush()
        record(session, "ftjob-1", *range(1, 31))
    return Tenant(session=factory(), project_id=project)


def test_metrics_without_rows_give_the_same_curves(tenant: Tenant) -> None:
    """Those of jobs from before there were rows are read out of each step's JSON."""
    job = tenant.session.get_one(Job, "ftjob-1")
    phase = metrics.pick_phase(metrics.list_phases(tenant, job), "rl", own="rl")
    names = ["train_mean_reward", "scores.graders.exact.train_reward_mean"]
    for window in (Window(None, None, 100), Window(3, 17, 8)):
        with_rows = metrics.read(tenant, job, phase, names, window)
        with tenant.session.begin_nested() as savepoint:
            tenant.session.execute(delete(MetricPoint))
            tenant.session.execute(delete(MetricSeries))
            assert metrics.read(tenant, job, phase, names, window) == with_rows
            savepoint.rollback()
    tenant.session.close()


def test_rows_that_lack_a_step_are_not_believed(tenant: Tenant) -> None:
    tenant.session.add(Metric(job_id="ftjob-1", phase="rl", step=31, data=data(31)))
    tenant.session.flush()
    job = tenant.session.get_one(Job, "ftjob-1")
    phase = metrics.pick_phase(metrics.list_phases(tenant, job), "rl", own="rl")
    curves, _ = metrics.read(tenant, job, phase, ["step"], Window(None, None, 100))
    assert curves[0].points[-1] == (31, 31.0)
    tenant.session.close()


def test_two_graders_of_one_name_have_a_curve_each() -> None:
    graders = [{"name": "a", "type": "multi", "x": 1}, {"name": "a", "type": "y", "x": 2}]
    assert series.numbers_in({"graders": graders, "text": "t", "flag": True}) == {
        "graders.a.x": 1.0,
        "graders.a.x#2": 2.0,
        "flag": 1.0,
    }

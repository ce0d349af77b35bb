"""The tasks: each looks into the database for what there is to do."""

import logging
import os
import socket
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from celery import Celery
from celery.signals import worker_shutting_down
from sqlalchemy import select

from core import eval_runs, serving_proofs
from core.artifacts import merges_wait
from core.gpu_quota import stop_over_quota
from core.lease import reap_expired
from core.limits import Limits
from core.queue import (
    DELIVER,
    EVALS,
    LIGHT,
    PROOFS,
    TRAIN,
    drain_outbox,
    enqueue_wake,
    resend_wakes,
)
from core.settings import Settings
from workers.cleaning import clean_once
from workers.context import Context
from workers.evals.runner import EvalRunner
from workers.indexing import index_waiting
from workers.merging import merge_waiting
from workers.proving.runner import Prover
from workers.retention import retain_once
from workers.supervisor.attempt import Conduct
from workers.supervisor.supervise import run_next
from workers.validation import validate_waiting
from workers.webhooks import Courier

logger = logging.getLogger(__name__)

TRAIN_NEXT = "workers.train_next"
VALIDATE = "workers.validate"
SWEEP = "workers.sweep"
CLEAN = "workers.clean"
RETAIN = "workers.retain"
INDEX = "workers.index"
RUN_EVALS = "workers.run_evals"
PROVE = "workers.prove"

#: The task that a wake-up starts.
TASK_OF_QUEUE = {TRAIN: TRAIN_NEXT, LIGHT: VALIDATE, EVALS: RUN_EVALS, PROOFS: PROVE}

#: Wake-ups that may wait in a queue; a longer queue of them only says the same again.
MAX_WAITING_WAKES = 64


@dataclass
class Runtime:
    """What the tasks of one worker process share."""

    settings: Settings
    conduct: Conduct
    #: Set when the worker is told to end: a running job is then given back.
    stopping: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def context(self) -> Context:
        """Connections, opened at first use: a forked process must not share its parent's."""
        return Context.open(self.settings)

    @property
    def owner(self) -> str:
        """Who this process is, for people who look at a lease."""
        return f"{socket.gethostname()}:{os.getpid()}"


def register(app: Celery, runtime: Runtime) -> None:
    """Add the tasks to an application; not shared, or another one in the process would get them."""
    courier = Courier(lambda: runtime.context)
    evals = EvalRunner(
        lambda: runtime.context, owner=lambda: runtime.owner, stopping=runtime.stopping
    )

    prover = Prover(lambda: runtime.context, stopping=runtime.stopping)

    @app.task(name=TRAIN_NEXT, shared=False)
    def train_next() -> str | None:
        """Merge the weights that users wait for, then run the best queued job; returns its id."""
        merge_waiting(runtime.context)
        return run_next(
            runtime.context,
            owner=runtime.owner,
            stopping=runtime.stopping,
            conduct=runtime.conduct,
        )

    @app.task(name=VALIDATE, shared=False)
    def validate() -> list[str]:
        """Validate the jobs that wait for it; returns their ids."""
        done = validate_waiting(runtime.context, owner=runtime.owner)
        if done:
            send_wakes(app, runtime.context)
        return done

    @app.task(name=SWEEP, shared=False)
    def sweep() -> list[str]:
        """Take jobs from workers that are gone and send wake-ups; returns the jobs taken."""
        return sweep_once(app, runtime.context)

    @app.task(name=CLEAN, shared=False)
    def clean() -> None:
        """Delete expired files and old messages, and stop jobs beyond their project's limit."""
        keep_quotas(runtime.context)
        clean_once(runtime.context)

    @app.task(name=DELIVER, shared=False)
    def deliver() -> None:
        """Have the courier look for webhooks to deliver."""
        courier.poke()

    @app.task(name=RUN_EVALS, shared=False)
    def run_evals() -> None:
        """Have the runner look for queued runs of evals."""
        evals.poke()

    @app.task(name=PROVE, shared=False)
    def prove() -> None:
        """Have the prover look for final models that are still to be asked."""
        prover.poke()

    @app.task(name=RETAIN, shared=False)
    def retain() -> None:
        """Delete what projects do not want to keep any longer."""
        retain_once(runtime.context)

    @app.task(name=INDEX, shared=False)
    def index() -> None:
        """Make samples searchable that were recorded without their rows."""
        index_waiting(runtime.context)

    @worker_shutting_down.connect(weak=False)
    def stop(**_details: Any) -> None:
        runtime.stopping.set()


def sweep_once(app: Celery, context: Context) -> list[str]:
    """Make up for what a broker or a worker lost; returns the jobs taken from lost workers."""
    with context.sessions.begin() as session:
        reaped = reap_expired(session)
        resend_wakes(session)
        if session.scalar(select(merges_wait())):
            enqueue_wake(session, TRAIN)
        lost = eval_runs.reap_expired(session)
        if eval_runs.any_queued(session):
            enqueue_wake(session, EVALS)
        if context.settings.serving_proof and serving_proofs.any_due(session):
            enqueue_wake(session, PROOFS)
    for job_id in (*reaped, *lost):
        logger.warning("Took %s from a worker that gave no heartbeat", job_id)
    send_wakes(app, context)
    return reaped


def keep_quotas(context: Context) -> None:
    """Stop the jobs of projects that have used up their GPU seconds."""
    with context.sessions.begin() as session:
        stopped = stop_over_quota(session, Limits.of(context.settings))
    for job_id in stopped:
        logger.warning("Stopped %s: its project has used its GPU seconds", job_id)


def send_wakes(app: Celery, context: Context) -> None:
    """Send the wake-ups that committed transactions asked for."""
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel

        def send(_kind: str, payload: dict[str, Any]) -> None:
            task = TASK_OF_QUEUE[payload["queue"]]
            queue = LIGHT if task in (RUN_EVALS, PROVE) else payload["queue"]
            waiting = channel.queue_declare(queue, durable=True).message_count
            if waiting < MAX_WAITING_WAKES:
                app.send_task(task, queue=queue, connection=connection)

        drain_outbox(context.sessions, send)

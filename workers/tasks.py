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

from core.lease import reap_expired
from core.queue import LIGHT, TRAIN, drain_outbox, resend_wakes
from core.settings import Settings
from workers.cleaning import clean_once
from workers.context import Context
from workers.supervisor.attempt import Conduct
from workers.supervisor.supervise import run_next
from workers.validation import validate_waiting

logger = logging.getLogger(__name__)

TRAIN_NEXT = "workers.train_next"
VALIDATE = "workers.validate"
SWEEP = "workers.sweep"
CLEAN = "workers.clean"

#: The task that a wake-up on a queue starts.
TASK_OF_QUEUE = {TRAIN: TRAIN_NEXT, LIGHT: VALIDATE}

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

    @app.task(name=TRAIN_NEXT, shared=False)
    def train_next() -> str | None:
        """Run the best queued job; returns its id."""
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
        """Delete expired files and old messages."""
        clean_once(runtime.context)

    @worker_shutting_down.connect(weak=False)
    def stop(**_details: Any) -> None:
        runtime.stopping.set()


def sweep_once(app: Celery, context: Context) -> list[str]:
    """Make up for what a broker or a worker lost; returns the jobs taken from lost workers."""
    with context.sessions.begin() as session:
        reaped = reap_expired(session)
        resend_wakes(session)
    for job_id in reaped:
        logger.warning("Took %s from a worker that gave no heartbeat", job_id)
    send_wakes(app, context)
    return reaped


def send_wakes(app: Celery, context: Context) -> None:
    """Send the wake-ups that committed transactions asked for."""
    with app.connection_for_write() as connection, context.sessions.begin() as session:
        channel: Any = connection.default_channel

        def send(_kind: str, payload: dict[str, Any]) -> None:
            queue = payload["queue"]
            waiting = channel.queue_declare(queue, durable=True).message_count
            if waiting < MAX_WAITING_WAKES:
                app.send_task(TASK_OF_QUEUE[queue], queue=queue, connection=connection)

        drain_outbox(session, send)

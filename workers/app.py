"""The Celery application: ``celery -A workers.app worker -Q train`` (or ``-Q light``), ``beat``.

A message is a wake-up and nothing more: it is acknowledged before the work begins, and all that a
task needs to know stands in the database. So a message that is lost, repeated or late changes
nothing but the time at which work starts.
"""

from typing import Any

from celery import Celery

from core.queue import DELIVER, LIGHT
from core.settings import Settings, get_settings
from core.starting import starting
from workers.supervisor.attempt import Conduct
from workers.tasks import CLEAN, INDEX, RETAIN, SWEEP, Runtime, register

#: Seconds between two sweeps, which keep jobs moving.
SWEEP_INTERVAL_S = 2.0
#: Seconds between two rounds of deleting what is out of date.
CLEAN_INTERVAL_S = 60.0
#: Seconds between two rounds of deleting what projects do not want to keep.
RETAIN_INTERVAL_S = 300.0
#: Seconds between two reminders to deliver webhooks, which set off a courier that is new.
DELIVER_INTERVAL_S = 2.0


def make_app(settings: Settings, *, conduct: Conduct | None = None) -> Celery:
    """The application on the broker that the settings name; nothing is contacted yet.

    Args:
        conduct: how training workers supervise; the real trainer when left out.
    """
    app = Celery("rft", broker=settings.broker_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_default_queue=LIGHT,
        broker_connection_retry_on_startup=True,
        # Threads: the process that hears SIGTERM is the one that runs the job, and it answers the
        # broker while it does.
        worker_pool="threads",
        # A training worker busy for hours must not hold wake-ups that an idle one could answer.
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        beat_schedule={
            "sweep": _every(SWEEP_INTERVAL_S, SWEEP),
            "clean": _every(CLEAN_INTERVAL_S, CLEAN),
            "retain": _every(RETAIN_INTERVAL_S, RETAIN),
            "index": _every(CLEAN_INTERVAL_S, INDEX),
            "deliver": _every(DELIVER_INTERVAL_S, DELIVER),
        },
    )
    register(app, Runtime(settings, conduct or Conduct()))
    return app


def _every(interval_s: float, task: str) -> dict[str, Any]:
    """A beat entry; a message that nobody took in time says nothing new and is dropped."""
    options = {"queue": LIGHT, "expires": interval_s}
    return {"task": task, "schedule": interval_s, "options": options}


with starting():
    app = make_app(get_settings())

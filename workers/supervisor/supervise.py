"""Take the next job and run it for as long as this worker holds it."""

import logging
import threading

from core.errors import StaleFence
from core.fenced import FencedWriter
from core.lease import Claim, claim
from workers.context import Context
from workers.supervisor.attempt import Attempt, Conduct
from workers.supervisor.heartbeat import Heartbeat

logger = logging.getLogger(__name__)


def run_next(
    context: Context, *, owner: str, stopping: threading.Event, conduct: Conduct
) -> str | None:
    """Claim the best queued job and run it to its end, or to the end of this worker's hold.

    Args:
        owner: who holds the job, for people who look at the row.
        stopping: set when this worker shuts down; the job then goes back to the queue.

    Returns:
        The job's id, or ``None`` when nothing was queued.
    """
    if stopping.is_set():
        return None
    with context.sessions.begin() as session:
        held = claim(session, owner=owner, ttl_s=context.settings.lease_ttl_s)
    if held is None:
        return None
    supervise(context, held, stopping=stopping, conduct=conduct)
    return held.job_id


def supervise(
    context: Context, held: Claim, *, stopping: threading.Event, conduct: Conduct
) -> None:
    """Run a claimed job and leave it in its next state, or in another holder's hands."""
    writer = FencedWriter(context.sessions, held.job_id, held.fence)
    heartbeat = Heartbeat(
        context.sessions,
        held.job_id,
        held.fence,
        ttl_s=context.settings.lease_ttl_s,
        interval_s=context.settings.heartbeat_s,
    )
    try:
        with heartbeat:
            Attempt(context, writer, heartbeat, stopping=stopping, conduct=conduct).run()
    except StaleFence as stale:
        logger.warning("%s", stale)

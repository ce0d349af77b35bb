"""Steering jobs and dry runs: pause, resume, cancel."""

from api.quotas import room_to_run
from api.tenancy import Tenant
from core.errors import IllegalTransition
from core.models import Job
from core.states import transition


def pause(tenant: Tenant, job: Job) -> Job:
    """Pause a queued job at once, a running one after its current step."""
    try:
        return transition(tenant.session, job.id, "paused", only_if=Job.status == "queued")
    except IllegalTransition:
        # Running, or a worker has claimed it just now; anything else is refused below.
        return transition(tenant.session, job.id, "pausing")


def resume(tenant: Tenant, job: Job) -> Job:
    """Queue a paused job again; it continues from its last checkpoint."""
    room_to_run(tenant)
    return transition(tenant.session, job.id, "queued", only_if=Job.status == "paused")


def cancel(tenant: Tenant, job: Job) -> Job:
    """Cancel a job that has not ended; what it has stored so far stays."""
    return transition(tenant.session, job.id, "cancelled")

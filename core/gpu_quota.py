"""Stops the jobs of projects that have used up their GPU seconds."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import IllegalTransition
from core.limits import Limits, gpu_seconds
from core.models import DRY_RUN, Job, Project
from core.states import transition

_STOPPED = ("queued", "running")


def stop_over_quota(session: Session, server: Limits) -> list[str]:
    """Pause the queued and running jobs of such projects, cancel their dry runs; return the ids.

    A dry run has nothing to go on from. `server` are the limits that a project does not change.
    """
    waiting = select(Job.project_id).where(Job.status.in_(_STOPPED))
    stopped = []
    for project in session.scalars(select(Project).where(Project.id.in_(waiting))).all():
        limit = server.changed(project.limits).gpu_seconds
        if limit is not None and gpu_seconds(session, project.id) >= limit:
            stopped += _stop(session, project.id, limit)
    return stopped


def _stop(session: Session, project_id: str, limit: int) -> list[str]:
    query = select(Job.id, Job.kind, Job.status).where(
        Job.project_id == project_id, Job.status.in_(_STOPPED)
    )
    stopped = []
    for job_id, kind, status in session.execute(query.order_by(Job.id)).all():
        paused = "paused" if status == "queued" else "pausing"
        to = "cancelled" if kind == DRY_RUN else paused
        try:
            transition(
                session,
                job_id,
                to,
                only_if=Job.status == status,
                message=f"The project has used its {limit:,} GPU seconds; the job is {to}. Have the"
                " operator raise the limit gpu_seconds.",
            )
        except IllegalTransition:
            continue  # a worker or a user was faster; the next round looks again
        stopped.append(job_id)
    return stopped

"""/v1/fine_tuning/jobs/{id}/metrics: the curves of a job."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.schemas.metrics import MetricsObject
from api.services import metrics
from api.services.downsample import MIN_POINTS
from api.services.series_rows import Window
from api.tenant import JobDep, TenantDep
from core.phases import STEPS_OF

router = APIRouter(prefix="/v1/fine_tuning/jobs")

#: The most points that one curve is shown with.
MAX_POINTS = 10_000


@router.get("/{fine_tuning_job_id}/metrics")
def read_metrics(
    tenant: TenantDep,
    job: JobDep,
    names: Annotated[list[str] | None, Query(description="Names, separated by commas.")] = None,
    max_points: Annotated[int, Query(ge=MIN_POINTS, le=MAX_POINTS)] = 500,
    phase: str | None = None,
    min_step: Annotated[int | None, Query(ge=0)] = None,
    max_step: Annotated[int | None, Query(ge=0)] = None,
) -> MetricsObject:
    """Show the curves of a job's metrics, each with all of its extremes and gaps."""
    phases = metrics.list_phases(tenant, job)
    own = STEPS_OF[job.method["type"]]
    chosen = metrics.pick_phase(phases, phase or own, own=own)
    window = Window(min_step=min_step, max_step=max_step, max_points=max_points)
    series, available = metrics.read(tenant, job, chosen, names or [], window)
    return MetricsObject(
        fine_tuning_job_id=job.id,
        phase=chosen.phase,
        max_points=max_points,
        series=series,
        available=available,
        phases=phases,
    )

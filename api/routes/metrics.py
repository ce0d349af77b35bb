"""/v1/fine_tuning/jobs/{id}/metrics: the curves of a job."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.query_names import refuse_unknown_query
from api.schemas.metrics import MetricsObject
from api.services import metrics
from api.services.downsample import MIN_POINTS
from api.tenant import JobDep, TenantDep
from core.errors import InvalidRequest

router = APIRouter(prefix="/v1/fine_tuning/jobs", dependencies=[Depends(refuse_unknown_query)])

#: The most points that one curve is shown with.
MAX_POINTS = 10_000


@router.get("/{fine_tuning_job_id}/metrics")
def read_metrics(
    tenant: TenantDep,
    job: JobDep,
    names: Annotated[list[str] | None, Query(description="Names, separated by commas.")] = None,
    max_points: Annotated[int, Query(ge=MIN_POINTS, le=MAX_POINTS)] = 500,
    phase: str = "rl",
    min_step: Annotated[int | None, Query(ge=0)] = None,
    max_step: Annotated[int | None, Query(ge=0)] = None,
) -> MetricsObject:
    """Show the curves of a job's metrics, each with all of its extremes and gaps."""
    phases = metrics.list_phases(tenant, job)
    chosen = metrics.pick_phase(phases, phase)
    window = metrics.Window(min_step=min_step, max_step=max_step, max_points=max_points)
    series, available = metrics.read(tenant, job, chosen, _split(names or []), window)
    return MetricsObject(
        fine_tuning_job_id=job.id,
        phase=phase,
        max_points=max_points,
        series=series,
        available=available,
        phases=phases,
    )


def _split(names: list[str]) -> list[str]:
    """Read `names=a,b` and `names=a&names=b` alike; a name that is asked for twice counts once."""
    given = [name.strip() for part in names for name in part.split(",")]
    wanted = list(dict.fromkeys(filter(None, given)))
    if len(wanted) > metrics.MAX_NAMES:
        raise InvalidRequest(
            f"{len(wanted)} names are more than the {metrics.MAX_NAMES} that one request may have;"
            " ask for the rest in another.",
            param="names",
        )
    return wanted

"""/v1/fine_tuning/jobs/{id}/clone"""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.bodies import json_body, parse
from api.parts import PartsDep
from api.schemas.clones import CloneJob
from api.schemas.jobs import CreateJob, JobObject
from api.services.clones import body_of, with_changes
from api.services.create_job import create_job
from api.tenant import JobDep, TenantDep

router = APIRouter(prefix="/v1/fine_tuning/jobs")


@router.post("/{fine_tuning_job_id}/clone")
def clone_job(
    tenant: TenantDep,
    job: JobDep,
    parts: PartsDep,
    changes: Annotated[CloneJob, Depends(json_body(CloneJob))],
) -> JobObject:
    """Create a job like another one, with changes; it is checked as any new job is."""
    body = with_changes(body_of(job), changes.model_dump(exclude_unset=True))
    made = create_job(
        tenant, parts.registry, parts.judges, parse(CreateJob, body), cloned_from=job.id
    )
    return JobObject.of(made, organization_id=parts.settings.organization_id)

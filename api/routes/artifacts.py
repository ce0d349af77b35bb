"""/v1/fine_tuning/jobs/{id}/checkpoints/{id}/artifacts: weights to take away."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from api.bodies import json_body
from api.content import CONTENT_RESPONSES, content_response
from api.parts import PartsDep
from api.schemas.artifacts import ArtifactList, MergedState
from api.schemas.common import EmptyBody
from api.services import artifacts
from api.tenant import TransactionsDep, get_job

router = APIRouter(
    prefix="/v1/fine_tuning/jobs/{fine_tuning_job_id}/checkpoints/{checkpoint_id}/artifacts"
)
#: Seconds for which an address in the object store may work: a minute to a week, as S3 has it.
ExpiresIn = Annotated[int | None, Query(ge=60, le=7 * 24 * 3600)]


@router.get("")
def list_artifacts(
    fine_tuning_job_id: str,
    checkpoint_id: str,
    transactions: TransactionsDep,
    parts: PartsDep,
    expires_in: ExpiresIn = None,
) -> ArtifactList:
    """List the files of a checkpoint's weights."""
    with transactions.begin() as tenant:
        job = get_job(fine_tuning_job_id, tenant)
        checkpoint = artifacts.get_checkpoint(tenant, job, checkpoint_id)
    files = artifacts.list_artifacts(parts.store, checkpoint, expires_s=expires_in)
    return ArtifactList(
        data=files,
        has_more=False,
        fine_tuning_job_id=checkpoint.job_id,
        checkpoint_id=checkpoint.id,
        merged=artifacts.merged_state(checkpoint),
    )


@router.post("/merged", status_code=202, dependencies=[Depends(json_body(EmptyBody))])
def merge_weights(
    fine_tuning_job_id: str, checkpoint_id: str, transactions: TransactionsDep
) -> MergedState:
    """Have a worker fold the adapter into its base model; what is there is not made again."""
    with transactions.begin() as tenant:
        job = get_job(fine_tuning_job_id, tenant)
        checkpoint = artifacts.get_checkpoint(tenant, job, checkpoint_id)
        artifacts.ask_for_merged(tenant, checkpoint)
        return artifacts.merged_state(checkpoint)


@router.get("/{form}/{path:path}", response_class=Response, responses=CONTENT_RESPONSES)
@router.head("/{form}/{path:path}", response_class=Response, responses=CONTENT_RESPONSES)
def download_artifact(
    fine_tuning_job_id: str,
    checkpoint_id: str,
    form: str,
    path: str,
    request: Request,
    transactions: TransactionsDep,
    parts: PartsDep,
) -> Response:
    """Send one file, or the range of it that is asked for."""
    with transactions.begin() as tenant:
        job = get_job(fine_tuning_job_id, tenant)
        checkpoint = artifacts.get_checkpoint(tenant, job, checkpoint_id)
    file = artifacts.find_artifact(parts.store, checkpoint, form, path)
    return content_response(request, parts.store, file)

"""/v1/fine_tuning/alpha/graders"""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool

from api.auth import PrincipalDep
from api.bodies import json_body
from api.parts import PartsDep
from api.schemas.graders import GraderRun, RunGrader, ValidatedGrader, ValidateGrader
from api.services.graders import answer_of, sample_of
from graders.masking import masked
from graders.spec import item_of, parse_grader, warnings

router = APIRouter(prefix="/v1/fine_tuning/alpha/graders")


@router.post("/validate")
def validate_grader(
    parts: PartsDep,
    body: Annotated[ValidateGrader, Depends(json_body(ValidateGrader))],
) -> ValidatedGrader:
    """Check a grader and show its normalised form."""
    grader = parse_grader(body.grader)
    parts.judges.check(grader, param="grader")
    return ValidatedGrader(grader=masked(body.grader), warnings=warnings(grader))


@router.post("/run")
async def run_grader(
    principal: PrincipalDep,
    parts: PartsDep,
    body: Annotated[RunGrader, Depends(json_body(RunGrader))],
) -> GraderRun:
    """Grade one sample; a grading that fails is an answer with flags, not an error."""
    await run_in_threadpool(lambda: parts.judges.check(parse_grader(body.grader), param="grader"))
    reply = await parts.graders.grade(
        body.grader,
        sample_of(body.model_sample),
        item_of(body.item or {}),
        project_id=principal.project_id,
    )
    return answer_of(body.grader, reply)

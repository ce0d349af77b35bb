"""What a user of the official SDK can send is known here: taken, or refused in its own words."""

from typing import Any, get_args

import pytest
from openai.types import completion_create_params, upload_create_params
from openai.types import eval_create_params as evals
from openai.types.chat import completion_create_params as chat
from openai.types.evals import run_create_params as runs
from openai.types.fine_tuning import job_create_params as jobs
from openai.types.fine_tuning.alpha import grader_run_params
from openai.types.shared import ReasoningEffort
from pydantic import BaseModel

from api.schemas.chat import ChatRequest
from api.schemas.completions import CompletionRequest
from api.schemas.eval_runs import CreateRun
from api.schemas.evals import CreateEval
from api.schemas.graders import RunGrader
from api.schemas.jobs import CreateJob
from api.schemas.uploads import CreateUpload

BODIES: tuple[tuple[Any, type[BaseModel]], ...] = (
    (chat.CompletionCreateParamsBase, ChatRequest),
    (completion_create_params.CompletionCreateParamsBase, CompletionRequest),
    (jobs.JobCreateParams, CreateJob),
    (evals.EvalCreateParams, CreateEval),
    (runs.RunCreateParams, CreateRun),
    (upload_create_params.UploadCreateParams, CreateUpload),
    (grader_run_params.GraderRunParams, RunGrader),
)


@pytest.mark.parametrize(("params", "model"), BODIES)
def test_every_parameter_is_known(params: Any, model: type[BaseModel]) -> None:
    known = {field.alias or name for name, field in model.model_fields.items()}
    assert set(params.__annotations__) <= known


def test_every_reasoning_effort_is_taken() -> None:
    literal, _ = get_args(ReasoningEffort)
    for effort in (*get_args(literal), None):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        ChatRequest.model_validate({**body, "reasoning_effort": effort})

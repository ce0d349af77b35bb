"""One of everything that a project can own, put into the database without asking the API."""

from sqlalchemy.orm import Session

from core.clock import now
from core.evals import custom_config
from core.keys import create_key, create_project
from core.methods import Method, normalise
from core.models import (
    DRY_RUN,
    Base,
    Checkpoint,
    CheckpointPermission,
    Eval,
    EvalItem,
    EvalRun,
    File,
    Job,
    Sample,
    Upload,
    WebhookDelivery,
    WebhookEndpoint,
)
from tests.api.examples import GRADER, METHOD


def own_one_of_each(session: Session, project_id: str, model: str) -> dict[str, str]:
    """Add one of everything and return, for each placeholder in a route's path, what fills it.

    A new kind of thing with a route of its own gets a line here. `model` is a name for the trained
    model; it is unique among all projects.
    """

    def add(row: Base) -> str:
        session.add(row)
        session.flush()
        return str(row.id)  # type: ignore[attr-defined]

    file_id = add(_file(project_id))
    job_id = add(_job(project_id, file_id))
    model_id = add(_checkpoint(project_id, job_id, model))
    grantee_id = create_project(session, "grantee").id
    permission = CheckpointPermission(project_id=project_id, model=model, grantee_id=grantee_id)
    eval_id = add(_eval(project_id))
    run_id = add(_run(project_id, eval_id))
    endpoint_id = add(_endpoint(project_id))
    upload = Upload(
        project_id=project_id,
        filename="f.jsonl",
        purpose="fine-tune",
        mime_type="text/jsonl",
        bytes=3,
        expires_at=now() + 1000,
    )
    return {
        "{file_id}": file_id,
        "{fine_tuning_job_id}": job_id,
        "{dry_run_id}": add(_job(project_id, file_id, kind=DRY_RUN)),
        "{model:path}": model,
        "{fine_tuned_model_checkpoint:path}": model,
        "{checkpoint_id}": model_id,
        "{permission_id}": add(permission),
        "{sample_id}": add(_sample(job_id)),
        "{key_id}": create_key(session, project_id, "key")[0].id,
        "{project_id}": project_id,
        "{upload_id}": add(upload),
        "{eval_id}": eval_id,
        "{run_id}": run_id,
        "{output_item_id}": add(
            EvalItem(run_id=run_id, position=0, status="pass", item={}, results=[])
        ),
        "{webhook_endpoint_id}": endpoint_id,
        "{delivery_id}": add(_delivery(project_id, endpoint_id)),
    }


def _file(project_id: str) -> File:
    return File(
        project_id=project_id,
        filename="f.jsonl",
        purpose="fine-tune",
        bytes=3,
        sha256="0" * 64,
        object_key="files/none",
    )


def _job(project_id: str, file_id: str, **columns: str) -> Job:
    return Job(
        project_id=project_id,
        status="queued",
        model="base-1-2024",
        method=normalise(Method.model_validate(METHOD)),
        hyperparameters={},
        training_file=file_id,
        seed=1,
        **columns,
    )


def _checkpoint(project_id: str, job_id: str, name: str) -> Checkpoint:
    return Checkpoint(
        project_id=project_id,
        job_id=job_id,
        phase="rl",
        step=8,
        name=name,
        object_prefix=f"jobs/{job_id}/checkpoints/8",
        kind="adapter",
        metrics={"step": 8},
        is_final=True,
        has_state=True,
    )


def _sample(job_id: str) -> Sample:
    return Sample(
        job_id=job_id,
        split="train",
        step=1,
        position=0,
        group=0,
        row=0,
        reward=1.0,
        truncated=False,
        tokens=1,
        preview="t",
    )


def _eval(project_id: str) -> Eval:
    return Eval(
        project_id=project_id,
        name="e",
        data_source_config=custom_config({}, with_sample=True),
        testing_criteria=[{**GRADER, "id": "exact-1"}],
    )


def _run(project_id: str, eval_id: str) -> EvalRun:
    return EvalRun(
        project_id=project_id,
        eval_id=eval_id,
        name="r",
        model="base-1-2024",
        data_source={"type": "jsonl", "source": {"type": "file_content", "content": []}},
    )


def _endpoint(project_id: str) -> WebhookEndpoint:
    return WebhookEndpoint(
        project_id=project_id,
        name="w",
        url="https://h.test/",
        event_types=[],
        secrets=[{"secret": "whsec_c2VjcmV0", "expires_at": None}],
    )


def _delivery(project_id: str, endpoint_id: str) -> WebhookDelivery:
    return WebhookDelivery(
        project_id=project_id,
        endpoint_id=endpoint_id,
        message_id="evt_1",
        event={
            "id": "evt_1",
            "object": "event",
            "created_at": 1,
            "type": "fine_tuning.job.succeeded",
            "data": {"id": "ftjob-1"},
        },
        give_up_at=now() + 1000,
    )

"""The eval that each fine-tuning job has: its grader as the one criterion, and one run for each
evaluation on the validation file.
"""

from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from core.evals import criterion_of, custom_config
from core.models import Eval, EvalItem, EvalRun, Job
from graders.spec import parse_grader

#: A row of a training file: a conversation, and whatever the grader reads.
ROW_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    "required": ["messages"],
}


def ensure_eval(session: Session, job: Job) -> Eval:
    """Return the job's eval, which is made and named in the job where there is none yet."""
    if job.eval_id is not None:
        # Locked: whoever deletes it looks for its runs, and is to find the one that comes now.
        return session.get_one(Eval, job.eval_id, with_for_update=True)
    grader = parse_grader(job.method["reinforcement"]["grader"])
    owner = Eval(
        project_id=job.project_id,
        job_id=job.id,
        name=f"Validation of {job.id}",
        data_source_config=custom_config(ROW_SCHEMA, with_sample=True),
        testing_criteria=[criterion_of(grader)],
    )
    session.add(owner)
    session.flush()
    job.eval_id = owner.id
    return owner


def forget_runs(session: Session, job_id: str, which: ColumnElement[bool]) -> None:
    """Delete runs that keep the job's evaluations, with their items; `which` is on `EvalRun`."""
    owner = select(Eval.id).where(Eval.job_id == job_id)
    own = (EvalRun.eval_id.in_(owner), EvalRun.phase.is_not(None), which)
    session.execute(delete(EvalItem).where(EvalItem.run_id.in_(select(EvalRun.id).where(*own))))
    session.execute(delete(EvalRun).where(*own))

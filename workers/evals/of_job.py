"""A job's evaluations on its validation file, kept as runs of the job's own eval.

The trainer reports them whole: base model, warm start, final model in an evaluation report, the
steps between in a rollout file. A run is written in one transaction of the job's holder; writing it
again, as a resumed job does, replaces it.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rft.dataset import iter_rows
from sqlalchemy import select
from sqlalchemy.orm import Session

from core import eval_runs, samples
from core.clock import now
from core.events import storable
from core.fenced import FencedWriter
from core.job_evals import ensure_eval, forget_runs
from core.models import Eval, EvalItem, EvalRun, Job
from graders.trace import Trace
from workers.context import Context
from workers.evals.grading import outcome_verdict, result_of
from workers.evals.sampling import shown_sample
from workers.evals.tally import Tally, status_of
from workers.supervisor import names
from workers.supervisor.jobdir import final_name

logger = logging.getLogger(__name__)

STEP, FINAL = "step_evaluation", "final_evaluation"

_NAMES = {
    "base_evaluation": "Base model",
    "warm_start_evaluation": "After the warm start",
    FINAL: "Final model",
}


class JobRuns:
    """Keeps the evaluations of one job, as the attempt at it in `directory` reports them."""

    def __init__(self, context: Context, job: Job, writer: FencedWriter, directory: Path) -> None:
        self._context, self._job, self._writer = context, job, writer
        self._rows = directory / "data" / "validation.jsonl"

    def evaluation(self, stage: str, step: int, path: Path) -> None:
        """Keep an evaluation report; raises StaleFence."""
        report = json.loads(path.read_bytes())
        self._keep(f"{stage}_evaluation", step, report["rows"])

    def rollouts(self, step: int, path: Path) -> None:
        """Keep the validation samples of a step; raises StaleFence.

        The final evaluation has the samples of its step among its own.
        """
        try:
            lines = [samples.parse_line(line) for line in samples.read_file(path)]
        except samples.Unreadable as error:
            logger.warning("No run for step %s of %s: %s", step, self._job.id, error)
            return
        self._keep(STEP, step, lines)

    def _keep(self, phase: str, step: int, lines: list[dict[str, Any]]) -> None:
        dataset = list(iter_rows(self._rows)) if self._rows.exists() else []
        with self._writer.transaction() as (session, job):
            owner = ensure_eval(session, job)
            if owner.deleted_at is not None:
                return
            if phase == STEP and _has_run(session, owner, FINAL, step):
                return
            forget_runs(session, job.id, (EvalRun.phase == phase) & (EvalRun.step == step))
            run = self._run(owner, phase, step)
            session.add(run)
            session.flush()
            tally = Tally(owner.testing_criteria, len(lines))
            for item in _items(run, owner, lines, dataset):
                tally.add(item)
                session.add(item)
            tally.show(run)
            owner.updated_at = now()

    def _run(self, owner: Eval, phase: str, step: int) -> EvalRun:
        model = self._model(phase, step)
        return EvalRun(
            project_id=owner.project_id,
            eval_id=owner.id,
            name=_NAMES.get(phase, f"Step {step}"),
            model=model,
            phase=phase,
            step=step,
            status=eval_runs.COMPLETED,
            finished_at=now(),
            data_source={
                "type": "completions",
                "model": model,
                "source": {"type": "file_id", "id": self._job.validation_file or ""},
                "input_messages": {
                    "type": "item_reference",
                    "item_reference": "item.messages",
                },
                "sampling_params": _sampling(self._job),
            },
        )

    def _model(self, phase: str, step: int) -> str:
        if phase == "base_evaluation":
            return self._job.init_from or self._job.model
        if phase == FINAL:
            return final_name(self._context, self._job)
        return names.checkpoint_name(
            self._job.model,
            organization=self._context.settings.organization_id,
            suffix=self._job.suffix,
            job_id=self._job.id,
            step=step,
        )


def _sampling(job: Job) -> dict[str, Any]:
    """How the trainer samples when it evaluates: greedily."""
    hyperparameters = job.method["reinforcement"]["hyperparameters"]
    limit = hyperparameters.get("max_completion_tokens")
    limits = {"max_completion_tokens": limit} if isinstance(limit, int) else {}
    return {"temperature": 0.0, "top_p": 1.0, "seed": 0, **limits}


def _has_run(session: Session, owner: Eval, phase: str, step: int) -> bool:
    found = select(EvalRun.id).where(
        EvalRun.eval_id == owner.id, EvalRun.phase == phase, EvalRun.step == step
    )
    return session.scalar(found) is not None


def _items(
    run: EvalRun, owner: Eval, lines: Iterable[dict[str, Any]], dataset: list[dict[str, Any]]
) -> Iterator[EvalItem]:
    (criterion,) = owner.testing_criteria
    fields = run.data_source["sampling_params"]
    for position, line in enumerate(lines):
        traces = [Trace.from_wire(each) for each in line["traces"]]
        result = result_of(criterion, outcome_verdict(line["outcome"], traces))
        row = dataset[line["row"]] if line["row"] < len(dataset) else {}
        text = storable(line["text"])
        yield EvalItem(
            run_id=run.id,
            position=position,
            status=status_of([result]),
            item=row,
            results=[result],
            sample=shown_sample(
                row.get("messages", []),
                [{"role": "assistant", "content": text}],
                fields=fields,
                model=run.model,
                finish_reason="length" if line["truncated"] else "stop",
                usage=_usage(line),
            ),
        )


def _usage(line: dict[str, Any]) -> dict[str, int]:
    completion = line.get("completion_tokens", len(line.get("token_ids", ())))
    prompt = line.get("prompt_tokens", 0)
    return {
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens": prompt,
        "cached_tokens": 0,
    }

"""Reports in, rows out: what a trainer says becomes events, metrics, samples and progress."""

import time
from pathlib import Path
from typing import Any

from core import samples
from core.fenced import FencedWriter
from core.phases import STEPS_OF
from core.store import ObjectStore
from workers.evals.of_job import JobRuns
from workers.supervisor import names
from workers.supervisor.checkpoints import CheckpointStore
from workers.supervisor.eta import FinishEstimate
from workers.supervisor.protocol import (
    CheckpointWritten,
    DryRunReported,
    Ended,
    Evaluation,
    Metrics,
    Noted,
    PhaseBegins,
    Probed,
    Progress,
    ProtocolError,
    Report,
    ResultFile,
    Rollouts,
    Started,
    Stopped,
    Warned,
    parse_json,
)
from workers.supervisor.uploads import Uploads

#: The phases whose steps are a job's own.
_STEPS = frozenset(STEPS_OF.values())
_PHASE_MESSAGES = {
    "dry_run": "Sampling and grading",
    "base_evaluation": "Evaluating the base model on the validation file",
    "warm_start": "Warm start: learning from demonstrations",
    "reference": "Asking the starting model about the outputs of the files",
    "warm_start_evaluation": "Evaluating the warm-started model on the validation file",
    "final_evaluation": "Evaluating the trained model on the validation file",
}
_STAGE_NAMES = {
    "base": "base model",
    "warm_start": "warm-started model",
    "final": "trained model",
}


class Recorder:
    """Record the reports of one attempt under its fence.

    Rows are written at once; objects go to ``uploads``, and their rows follow them. Rows carry the
    phase and step they belong to, so that a later attempt can forget those past its checkpoint.

    ``ended``, ``final``, ``dry_run`` and ``result_files`` hold the last report, the final
    checkpoint, the report of a dry run and the files for the finished job, once they came.
    """

    def __init__(
        self,
        writer: FencedWriter,
        store: ObjectStore,
        checkpoints: CheckpointStore,
        uploads: Uploads,
        runs: JobRuns,
        directory: Path,
    ) -> None:
        self._writer, self._store, self._runs = writer, store, runs
        self._checkpoints, self._uploads = checkpoints, uploads
        self._directory = directory
        self._phase, self._step, self._total_steps = "loading", 0, 0
        #: Where the job's own steps begin in this attempt: step, total steps.
        self._begin = (0, 0)
        self._estimate = FinishEstimate()
        self._finish: int | None = None
        self.ended: Ended | None = None
        self.final: CheckpointWritten | None = None
        self.dry_run: dict[str, Any] | None = None
        self.result_files: dict[str, Path] = {}

    def record(self, report: Report) -> None:
        """Record one report.

        Raises:
            StaleFence: another holder has the job.
            ProtocolError: the report names a file outside the trainer's output folder.
        """
        match report:
            case Started():
                self._started(report)
            case PhaseBegins():
                self._phase_begins(report)
            case Metrics():
                self._metrics(report)
            case Rollouts():
                self._rollouts(report)
            case Evaluation():
                self._evaluation(report)
            case CheckpointWritten():
                self._checkpoint(report)
            case ResultFile():
                self.result_files[report.filename] = self._path(report.path)
            case Warned(message=message, code=code, data=data):
                coded = None if code is None else {"code": code, **data}
                self._remark(message, level="warn", data=coded)
            case Noted(message=message, data=data):
                self._remark(message, level="info", data=data)
            case Stopped(message=message, reason=reason, data=data):
                # A plateau is what was waited for; a budget may have come too early.
                level = "info" if reason == "plateau" else "warn"
                self._remark(message, level=level, data={"code": reason, **data})
            case Progress(phase="dry_run"):
                self._step, self._total_steps = report.done, report.total
                self._progress()
            case Progress():
                pass  # a sign of life, nothing to keep
            case Probed(message=message, level=level, data=data):
                # It belongs to step 1: a run that begins before that step looks again.
                self._writer.event(message, level=level, data=data, phase="rl", step=1)
            case DryRunReported():
                self.dry_run = self._read_json(report.path)
            case Ended():
                self.ended = report

    def _remark(self, message: str, *, level: str, data: dict[str, Any] | None) -> None:
        self._writer.event(message, level=level, data=data, phase=self._phase, step=self._step)

    def _started(self, report: Started) -> None:
        self._step, self._total_steps = report.step, report.total_steps
        self._begin = (report.step, report.total_steps)
        if report.resumed:
            warm = report.warm_start_step
            place = f"step {report.step}" if warm is None else f"step {warm} of the warm start"
            self._writer.event(f"Going on from the checkpoint of {place}")
        self._progress()

    def _phase_begins(self, report: PhaseBegins) -> None:
        self._phase = report.phase
        if report.phase in _STEPS:
            self._step, self._total_steps = self._begin
            self._estimate.phase_began(self._step, time.time())
        if message := _PHASE_MESSAGES.get(report.phase):
            # A phase starts before its step 1, yet after all steps of the phases before.
            self._writer.event(message, phase=report.phase, step=0)
        self._progress()

    def _metrics(self, report: Metrics) -> None:
        self._phase = report.phase
        self._step, self._total_steps = report.step, report.total_steps
        data = {
            "phase": report.phase,
            "step": report.step,
            "total_steps": report.total_steps,
            **report.data,
        }
        if report.phase in _STEPS:
            self._finish = self._estimate.step_ended(report.step, report.total_steps, time.time())
        self._writer.step_ended(
            report.phase,
            report.step,
            data,
            message=metrics_message(report),
            total_steps=report.total_steps or None,
            estimated_finish=self._finish,
        )

    def _rollouts(self, report: Rollouts) -> None:
        path = self._path(report.path)
        key = names.rollouts_key(
            self._writer.job_id, step=report.step, split=report.split, fence=self._writer.fence
        )

        def upload() -> None:
            self._store.put_file(key, path)
            self._writer.rollout(
                report.step,
                report.split,
                key,
                report.count,
                bytes=path.stat().st_size,
                rows=self._sample_rows(report, path),
            )
            if report.split == "valid":
                self._runs.rollouts(report.step, path)
            path.unlink()

        self._uploads.submit(upload)

    def _sample_rows(self, report: Rollouts, path: Path) -> list[dict[str, Any]] | None:
        """What is searched of the samples; None, and a warning, where the file cannot be read."""
        try:
            return [
                *samples.rows_of(
                    samples.read_file(path),
                    job_id=self._writer.job_id,
                    step=report.step,
                    split=report.split,
                )
            ]
        except samples.Unreadable as error:
            self._writer.event(
                f"The samples of step {report.step} ({report.split}) cannot be searched: {error}.",
                level="warn",
                phase="rl",
                step=report.step,
            )
            return None

    def _evaluation(self, report: Evaluation) -> None:
        path, phase = self._path(report.path), f"{report.stage}_evaluation"
        key = names.report_key(
            self._writer.job_id, stage=report.stage, step=report.step, fence=self._writer.fence
        )
        # The rows stand in the stored report and in the run; the event would only repeat them.
        summary = {k: v for k, v in report.summary.items() if k != "held_out_rows"}
        data = {**summary, "stage": report.stage, "report": key}

        def upload() -> None:
            self._store.put_file(key, path)
            self._runs.evaluation(report.stage, report.step, path)
            self._writer.metrics(phase, report.step, data, message=evaluation_message(report))

        self._uploads.submit(upload)

    def _checkpoint(self, report: CheckpointWritten) -> None:
        self._path(report.path)
        if report.final:
            self.final = report
        self._uploads.submit(lambda: self._checkpoints.store(report))
        self._uploads.submit(self._checkpoints.let_go)

    def _progress(self) -> None:
        self._writer.progress(self._phase, self._step, self._total_steps or None, self._finish)

    def _read_json(self, relative: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = parse_json(self._path(relative).read_bytes())
        except ValueError as error:
            raise ProtocolError(
                f"The trainer wrote {relative}, which is no JSON: {error}"
            ) from error
        return content

    def _path(self, relative: str) -> Path:
        path = (self._directory / relative).resolve()
        if not path.is_relative_to(self._directory / "out"):
            raise ProtocolError(f"The trainer reported {relative}, which is not in its out folder.")
        return path


def metrics_message(report: Metrics) -> str:
    """The sentence of a step's event, in OpenAI's words (the space before the comma is theirs)."""
    step, data = f"{report.step}/{report.total_steps}", report.data
    if report.phase != "rl":
        return f"Step {step}: {_losses(data)}"
    parts = [f"Step {step} "]
    for label, key in (
        ("train mean reward", "train_mean_reward"),
        ("full validation mean reward", "full_valid_mean_reward"),
        ("full validation mean parse error", "full_valid_mean_parse_error"),
    ):
        if data.get(key) is not None:
            parts.append(f"{label}={data[key]:.2f}")
    return ", ".join(parts)


def _losses(data: dict[str, Any]) -> str:
    return ", ".join(
        f"{label}={data[key]:.2f}"
        for label, key in (
            ("training loss", "train_loss"),
            ("validation loss", "valid_loss"),
            ("full validation loss", "full_valid_loss"),
        )
        if data.get(key) is not None
    )


def evaluation_message(report: Evaluation) -> str:
    """The sentence of an evaluation's event: held-out results, or those of the choosing rows."""
    for rows, label in (("held_out", "held-out"), ("selection", "validation")):
        figures: dict[str, Any] = report.summary.get(rows) or {}
        if figures.get("rows"):
            return (
                f"Evaluation of the {_STAGE_NAMES[report.stage]} on {figures['rows']} {label} "
                f"rows: {_figure(figures, 'reward')}, {_figure(figures, 'solved')}"
                f"{_without_score(figures)}"
            )
    return f"Evaluation of the {_STAGE_NAMES[report.stage]}: no rows"


def _without_score(figures: dict[str, Any]) -> str:
    counts = [
        f"{figures[key]} {word}"
        for key, word in (
            ("failures", "could not be graded"),
            ("abstentions", "without an opinion"),
        )
        if figures.get(key)
    ]
    return f" ({', '.join(counts)})" if counts else ""


def _figure(figures: dict[str, Any], name: str) -> str:
    value = figures.get(name) or {}
    if value.get("mean") is None:
        return f"no {name}"
    return f"{name}={value['mean']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"

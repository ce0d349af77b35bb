"""What the supervisor is told, and the files that its reports name."""

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainer import rollout_file
from trainer.channel import Channel
from trainer.checkpoint import Progress, has_state
from trainer.metrics import step_metrics
from trainer.reinforcement.probe import Probe
from trainer.reinforcement.step import Step
from trainer.sampling import Rollout
from trainer.spec import TrainSpec
from trainer.watch.finding import Finding, Stop

#: Seconds between two signs of life.
SIGN_OF_LIFE_S = 10.0


class Reports:
    """Writes below ``out/`` of the job directory; paths in reports are relative to the latter."""

    def __init__(self, channel: Channel, spec: TrainSpec, job_dir: Path) -> None:
        self.out = job_dir / "out"
        self._channel, self._spec, self._job_dir = channel, spec, job_dir
        self._last_sign = time.monotonic()

    def progress(self, done: int, total: int, *, phase: str = "sampling") -> None:
        """A sign of life during long sampling or measuring; most calls say nothing."""
        if time.monotonic() - self._last_sign > SIGN_OF_LIFE_S:
            self._last_sign = time.monotonic()
            self._channel.report("progress", phase=phase, done=done, total=total)

    def grading(self) -> None:
        """A sign of life while the grader takes its time."""
        self._channel.report("progress", phase="grading", done=0, total=0)

    def step(self, result: Step, valid: list[Rollout] | None, step: int) -> dict[str, Any]:
        """Report a reinforcement step and its samples; returns its metrics."""
        self._rollouts(step, "train", result.rollouts, result.advantages)
        if valid:
            self._rollouts(step, "valid", valid, None)
        total = self._spec.reinforcement.hyperparameters.max_steps
        data = step_metrics(
            self._spec.reinforcement.grader,
            result.rollouts,
            valid,
            step=step,
            total_steps=total,
            update=result.metrics,
            group_size=self._spec.reinforcement.hyperparameters.group_size,
        )
        self._channel.report("metrics", phase="rl", step=step, total_steps=total, data=data)
        return data

    def probe(self, found: Probe) -> None:
        """Report the look at the first groups."""
        level = "info" if found.spread.level == "good" else "warn"
        self._channel.report(
            "probe",
            level="error" if found.refused else level,
            message=found.message(self._spec.reinforcement.hyperparameters.max_completion_tokens),
            data={"groups": found.spread.wire(), "completions": found.spread.completions},
        )

    def dry_run(self, content: dict[str, Any], samples: Iterable[dict[str, Any]]) -> None:
        """Write and report the report of a dry run and the samples behind it."""
        path = self.out / "reports" / "samples.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as lines:
            for sample in samples:
                lines.write(json.dumps(sample, ensure_ascii=False) + "\n")
        self._channel.report("result_file", filename=path.name, path=self._relative(path))
        path = self.out / "reports" / "dry_run.json"
        path.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        self._channel.report("dry_run", path=self._relative(path))

    def learned(self, phase: str, step: int, total: int, data: dict[str, Any]) -> None:
        """Report an update of a method without samples."""
        self._channel.report("metrics", phase=phase, step=step, total_steps=total, data=data)

    def warm_start_step(self, step: int, total: int, data: dict[str, Any]) -> None:
        """Report an update of the supervised phase."""
        self._channel.report("metrics", phase="warm_start", step=step, total_steps=total, data=data)

    def evaluation(self, stage: str, step: int, path: Path, summary: dict[str, Any]) -> None:
        """Report a full evaluation whose rows stand in ``path``."""
        self._channel.report(
            "evaluation", stage=stage, step=step, path=self._relative(path), summary=summary
        )

    def result_file(self, filename: str, content: dict[str, Any]) -> None:
        """Write and report a JSON file for the user."""
        path = self.out / "reports" / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        self._channel.report("result_file", filename=filename, path=self._relative(path))

    def checkpoint(
        self,
        directory: Path,
        progress: Progress,
        metrics: dict[str, Any],
        kind: str,
        *,
        phase: str,
        step: int,
        proof: dict[str, Any] | None = None,
    ) -> None:
        """Report a complete checkpoint directory; ``proof`` is that of the export."""
        self._channel.report(
            "checkpoint",
            phase=phase,
            step=step,
            path=self._relative(directory),
            kind=kind,
            final=phase == "export",
            state=has_state(directory),
            metrics=metrics,
            trained_tokens=progress.trained_tokens,
            proof=proof,
        )

    def new_directory(self, name: str) -> Path:
        """An empty checkpoint directory; those that the supervisor holds by now are deleted."""
        for old in (self.out / "checkpoints").glob("*"):
            if self._channel.was_stored(self._relative(old)):
                shutil.rmtree(old)
        directory = self.out / "checkpoints" / name
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        return directory

    def _rollouts(
        self, step: int, split: str, rollouts: list[Rollout], advantages: list[float] | None
    ) -> None:
        suffix = "" if split == "train" else f".{split}"
        path = self.out / "rollouts" / f"{step}{suffix}.jsonl.zst"
        group_size = self._spec.reinforcement.hyperparameters.group_size if split == "train" else 1
        count = rollout_file.write(path, rollouts, advantages, group_size=group_size)
        self._channel.report(
            "rollouts", step=step, split=split, path=self._relative(path), count=count
        )

    def note(self, message: str, data: dict[str, Any]) -> None:
        """Report a sentence with its numbers, which belongs to no step."""
        self._channel.report("note", message=message, data=data)

    def warn(self, message: str) -> None:
        """Report a sentence that the user should see."""
        self._channel.report("warning", message=message)

    def finding(self, finding: Finding) -> None:
        """Report a warning with its evidence."""
        self._channel.report(
            "warning", message=finding.message, code=finding.code, data=finding.data
        )

    def stopped(self, stop: Stop) -> None:
        """Report that training ends early, and what was learned is the result."""
        self._channel.report("stopped", reason=stop.reason, message=stop.message, data=stop.data)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self._job_dir))

"""A job that learns from fixed rows: one loop for demonstrations and for preferences.

Each step takes the next rows of a seeded order, updates, and reports. Validation rows are looked at
in between, the first of them at intervals and all of them at the end of every epoch, which also
brings a checkpoint. Nothing is sampled and nothing graded.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from trainer import checkpoint
from trainer.architecture import check_architecture
from trainer.channel import Channel
from trainer.data import batch_for_step
from trainer.errors import Diverged, Paused
from trainer.job import PROOF_ROWS, Job
from trainer.means import Means
from trainer.packing import Group
from trainer.parallel import Part, Team
from trainer.schedule import rate_share
from trainer.spec import PreferenceSpec, SupervisedSpec, TrainSpec
from trainer.watch.memory import memory_used

Row = TypeVar("Row")
Item = TypeVar("Item")
Found = TypeVar("Found")

#: Forward passes between two signs of life.
PASSES_AT_ONCE = 16


class OfflineJob(Job, Generic[Row]):
    """The loop; a method adds how rows are read, learnt and measured.

    Args:
        team: the processes that share the work.
    """

    method: SupervisedSpec | PreferenceSpec

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel, team: Team) -> None:
        super().__init__(spec, job_dir, channel)
        assert isinstance(spec.method, SupervisedSpec | PreferenceSpec)
        self.method, self.team = spec.method, team
        self.phase = spec.method.type
        self.rows = self.load(job_dir / spec.data.train)
        self.validation = self.load(job_dir / spec.data.validation) if spec.data.validation else []
        groups = self.answers([*self.rows, *self.validation])
        rows = [(g.prompt, max(map(len, g.completions))) for g in groups]
        check_architecture(
            self.policy,
            max((prompt for prompt, _ in rows), key=len),
            longest=max(len(prompt) + answer for prompt, answer in rows),
        )

    # --- what a method adds -------------------------------------------------------------------

    @abstractmethod
    def load(self, path: Path) -> list[Row]:
        """Read a file; raises InvalidData."""

    @abstractmethod
    def learn(self, rows: Sequence[Row], token_budget: int) -> Means:
        """Add up the gradients of an update; returns its figures, ``loss`` among them."""

    @abstractmethod
    def measure(self, rows: Sequence[Row]) -> list[Means]:
        """The figures of each row, ``loss`` among them."""

    @abstractmethod
    def tokens(self, rows: Sequence[Row]) -> int:
        """How many tokens are trained on."""

    @abstractmethod
    def answers(self, rows: Sequence[Row]) -> list[Group]:
        """Prompts and answers that prove the export."""

    def prepare(self) -> None:
        """Do what needs the weights that the job begins with, before a checkpoint is read."""

    def passes(self, part: Part[Item, Found], items: Sequence[Item]) -> list[Found]:
        """Run forward passes, which may be many, with signs of life between them."""
        found: list[Found] = []
        for start in range(0, len(items), PASSES_AT_ONCE):
            some = items[start : start + PASSES_AT_ONCE]
            found += self.team.map(part, {"policy": self.policy}, some)
            self.reports.progress(len(found), len(items), phase=self.phase)
        return found

    # --- the loop -----------------------------------------------------------------------------

    def execute(self) -> None:
        """Train, and export what was learnt."""
        self.prepare()
        self.policy.start_optimizer()
        resume = self.resumable
        if resume is not None:
            self.progress = checkpoint.read(resume, self.policy)
        self.watch.begin(self.progress.watch)
        total = self.method.max_steps
        resumed = resume is not None
        self.channel.report("started", step=self.progress.step, total_steps=total, resumed=resumed)
        self.channel.report("phase", phase=self.phase)
        if not resumed and self.validation:
            self._tell_validation("Before training")
        metrics: dict[str, Any] = {}
        while self.progress.step < total:
            stop = self.watch.before_step(self.phase)
            if stop is not None:
                self.reports.stopped(stop)
                break
            metrics = self._step()
        if self.validation and "full_valid_loss" not in metrics:
            metrics |= self._tell_validation("At the end")
        self.channel.report("phase", phase="export")
        proving = self.answers([*self.validation, *self.rows][:PROOF_ROWS])
        self.export(metrics, proving[:PROOF_ROWS])

    def _tell_validation(self, when: str) -> dict[str, float]:
        """Tell what all validation rows say where there is no step to tell it with."""
        data = self._validate(full=True)
        self.reports.note(
            f"{when}: full validation loss={data['full_valid_loss']:.2f}, mean token "
            f"accuracy={data['full_valid_mean_token_accuracy']:.2f}",
            data,
        )
        return data

    def _step(self) -> dict[str, Any]:
        began = time.perf_counter()
        with self.keeping_what_was_learned():
            data = self._update()
        updated = time.perf_counter()
        step, total = self.progress.step, self.method.max_steps
        full = self._ends_epoch(step) or step == total
        data |= self._validate(full=full)
        data["timing"] = _timing(updated - began, time.perf_counter() - updated)
        speed = data["trained_tokens"] / (updated - began)
        data |= {"throughput": {"training_tokens_per_s": speed}, "memory": memory_used()}
        self.reports.learned(self.phase, step, total, data)
        if step < total:
            # Asked once: a wish that comes while the checkpoint is written waits for the next step.
            pause = self.channel.pause_requested.is_set()
            if pause or full or step % self.spec.checkpoint_interval == 0:
                self.save_checkpoint(data)
            if pause:
                raise Paused(f"Paused after step {step}.")
        return data

    def _update(self) -> dict[str, Any]:
        step = self.progress.step
        rows = batch_for_step(self.rows, step, self.method.batch_size, self.spec.seed)
        rate = self.method.learning_rate * rate_share(step + 1, self.method.max_steps)
        figures = self.watch.within_memory(self.policy, lambda budget: self.learn(rows, budget))
        if not math.isfinite(figures["loss"]):
            raise Diverged(
                "The loss is not finite. Lower learning_rate or look at the rows.",
                weights_spoilt=True,
            )
        norm = self.policy.update(rate)
        tokens = self.tokens(rows)
        self.progress.step += 1
        self.progress.trained_tokens += tokens
        self.watch.counted(self.phase, tokens)
        return {
            **figures.named("train"),
            "learning_rate": rate,
            "grad_norm": norm,
            "trained_tokens": tokens,
            "epoch": self.progress.step * self.method.batch_size / len(self.rows),
        }

    def _validate(self, *, full: bool) -> dict[str, float]:
        """Look at the validation rows when it is time: the first ones, or all of them."""
        due = full or self.progress.step % self.method.eval_interval == 0
        if not self.validation or not due:
            return {}
        chosen = self.method.eval_samples
        rows = self.validation if full else self.validation[:chosen]
        figures = self.measure(rows)
        look = figures[:chosen]
        losses: list[float | None] = [row["loss"] for row in look]
        if not all(math.isfinite(row["loss"]) for row in figures):
            raise Diverged("The validation loss is not finite. Lower learning_rate.")
        self.watch.validated(self.progress.step, losses, lower_is_better=True)
        means = Means.sum(look).named("valid")
        return means | Means.sum(figures).named("full_valid") if full else means

    def _ends_epoch(self, step: int) -> bool:
        """Whether a step takes the last row of an epoch."""
        size, rows = self.method.batch_size, len(self.rows)
        return step * size // rows > (step - 1) * size // rows


def in_order(places: Sequence[Sequence[int]], parts: Iterable[Iterable[Found]]) -> list[Found]:
    """What parts of a batch found, in the order of the batch: each part was of these places."""
    indices = [index for part in places for index in part]
    found = dict(zip(indices, (each for part in parts for each in part), strict=True))
    return [found[index] for index in range(len(indices))]


def _timing(training: float, evaluation: float) -> dict[str, Any]:
    return {
        "step": {
            "training": training,
            "eval": evaluation,
            "full_iteration": training + evaluation,
        }
    }

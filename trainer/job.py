"""What every method's job has: a policy that learns, reports, checkpoints, and a proved export."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from trainer import checkpoint, proof
from trainer.channel import Channel
from trainer.checkpoint import Beside, Progress
from trainer.errors import Diverged
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reports import Reports
from trainer.spec import TrainSpec
from trainer.watch.watch import Watch

#: Completions whose log-probabilities prove the export.
PROOF_ROWS = 8


def load_policy(spec: TrainSpec, job_dir: Path) -> Policy:
    """The policy as a job begins with it, the same in every process that calls this.

    Raises:
        UnusableModel: see :func:`trainer.loading.load_model`.
    """
    return Policy.load(
        spec.model.path,
        name=spec.model.id,
        chat_template=spec.model.chat_template,
        init=None if spec.init is None else job_dir / spec.init,
        dtype=getattr(torch, spec.dtype),
        adapter=spec.adapter,
        seed=spec.seed,
    )


class Job:
    """One job; a method adds its data, its loop and its evaluation.

    ``phase`` is what reports call its steps.
    """

    phase = "rl"

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel) -> None:
        self.spec, self.channel = spec, channel
        self.job_dir, self.reports = job_dir, Reports(channel, spec, job_dir)
        self.policy = load_policy(spec, job_dir)
        self.progress = Progress()
        self.watch = Watch(spec.limits, self.reports.finding)
        self._kept_step = 0
        self.reference: Policy | None = None

    @property
    def begins_as_base(self) -> bool:
        """Whether the policy begins as the very model that a sampler loads by itself."""
        return self.spec.init is None and self.spec.adapter.quantization == "none"

    @property
    def resumable(self) -> Path | None:
        """The checkpoint to go on from, if there is one."""
        directory = self.job_dir / "resume"
        return directory if checkpoint.has_state(directory) else None

    def beside(self) -> Beside:
        """What a checkpoint keeps of this method."""
        return Beside(reference=self.reference)

    def save_checkpoint(self, metrics: dict[str, Any]) -> None:
        """Write and report a checkpoint of the present step."""
        warm = self.progress.warm_start
        here = self.phase, self.progress.step
        phase, step = here if warm is None else ("warm_start", warm["step"])
        directory = self.reports.new_directory(f"{phase}-step-{step}")
        self.progress.watch = self.watch.saved()
        self._kept_step = self.progress.step
        checkpoint.write(directory, self.policy, self.progress, self.beside())
        self.reports.checkpoint(
            directory, self.progress, metrics, self.policy.kind, phase=phase, step=step
        )

    @contextmanager
    def keeping_what_was_learned(self) -> Iterator[None]:
        """Where an update is not finite, write a checkpoint of what came before it, then raise."""
        try:
            yield
        except Diverged as error:
            # That update was not applied, so the weights are as the one before it left them.
            self.policy.discard_gradients()
            if self.progress.step > self._kept_step and not error.weights_spoilt:
                self.save_checkpoint({})
            raise

    def export(self, metrics: dict[str, Any], proof_groups: list[Group]) -> None:
        """Write, prove and report the final checkpoint.

        Args:
            proof_groups: prompts and completions whose log-probabilities are compared.
        """
        directory = self.reports.new_directory("final")
        self.policy.save_model(directory / "model")
        proof.record(self.policy, proof_groups, directory / "proof.json")
        proved = proof.prove(
            directory / "model",
            self.spec.model.path,
            directory / "proof.json",
            self.spec.dtype,
            quantization=self.spec.adapter.quantization,
        )
        if not proved["differs_from_base"]:
            self.reports.warn(
                "The exported model answers exactly as the base model does: nothing was learned."
            )
        apart = proved.get("mean_difference_unquantized", 0.0)
        if apart > self.spec.limits.max_mismatch:
            self.reports.warn(
                f"On the base as it is served the adapter differs by {apart:.2f} nats per token "
                "from what was trained in 4 bits, so answers may be worse than validation says; "
                "train with quantization 'none', or choose a larger model."
            )
        self.reports.checkpoint(
            directory,
            self.progress,
            metrics,
            self.policy.kind,
            phase="export",
            step=self.progress.step,
            proof=proved,
        )

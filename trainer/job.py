"""What every method's job has: a policy that learns, reports, checkpoints, and a proved export."""

from pathlib import Path
from typing import Any

import torch

from trainer import checkpoint, proof
from trainer.channel import Channel
from trainer.checkpoint import Progress
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reports import Reports
from trainer.spec import TrainSpec

#: Completions whose log-probabilities prove the export.
PROOF_ROWS = 8


class Job:
    """One job; a method adds its data, its loop and its evaluation."""

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel) -> None:
        self.spec, self.channel = spec, channel
        self.job_dir, self.reports = job_dir, Reports(channel, spec, job_dir)
        self.policy = Policy.load(
            spec.model.path,
            name=spec.model.id,
            init=None if spec.init is None else job_dir / spec.init,
            dtype=getattr(torch, spec.dtype),
            adapter=spec.adapter,
            seed=spec.seed,
        )
        self.progress = Progress()
        self.reference: Policy | None = None

    @property
    def resumable(self) -> Path | None:
        """The checkpoint to go on from, if there is one."""
        directory = self.job_dir / "resume"
        return directory if checkpoint.has_state(directory) else None

    def save_checkpoint(self, metrics: dict[str, Any]) -> None:
        """Write and report a checkpoint of the present step."""
        directory = self.reports.new_directory(f"step-{self.progress.step}")
        checkpoint.write(directory, self.policy, self.progress, self.reference)
        self.reports.checkpoint(directory, self.progress, metrics, self.policy.kind, final=False)

    def export(self, metrics: dict[str, Any], proof_groups: list[Group]) -> None:
        """Write, prove and report the final checkpoint.

        Args:
            proof_groups: prompts and completions whose log-probabilities are compared.
        """
        directory = self.reports.new_directory("final")
        self.policy.save_model(directory / "model")
        proof.record(self.policy, proof_groups, directory / "proof.json")
        proved = proof.prove(
            directory / "model", self.spec.model.path, directory / "proof.json", self.spec.dtype
        )
        if not proved["differs_from_base"]:
            self.reports.warn(
                "The exported model answers exactly as the base model does: nothing was learned."
            )
        self.reports.checkpoint(
            directory, self.progress, metrics, self.policy.kind, final=True, proof=proved
        )

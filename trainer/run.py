"""One job from its directory to its final checkpoint."""

from contextlib import ExitStack
from pathlib import Path

import torch

from trainer.channel import Channel
from trainer.reinforcement.run import run_reinforcement
from trainer.spec import TrainSpec


def run(job_dir: Path, channel: Channel) -> None:
    """Train the job in ``job_dir``; raises a :class:`TrainerError` when it ends early."""
    spec = TrainSpec.load(job_dir)
    if spec.threads > 0:
        torch.set_num_threads(spec.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    channel.report("phase", phase="loading")
    with ExitStack() as stack:
        if spec.method.type == "reinforcement":
            run_reinforcement(spec, job_dir, channel, stack)
        else:
            raise NotImplementedError(spec.method.type)

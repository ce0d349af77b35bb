"""One job from its directory to its final checkpoint."""

from contextlib import ExitStack
from pathlib import Path

import torch

from trainer.channel import Channel
from trainer.parallel import Team, threads_per_rank
from trainer.preference.run import PreferenceJob
from trainer.reinforcement.run import run_reinforcement
from trainer.spec import TrainSpec
from trainer.supervised.run import SupervisedJob


def run(job_dir: Path, channel: Channel) -> None:
    """Train the job in ``job_dir``; raises a :class:`TrainerError` when it ends early."""
    spec = TrainSpec.load(job_dir)
    if spec.threads > 0 or spec.processes > 1:
        torch.set_num_threads(threads_per_rank(spec))
    torch.use_deterministic_algorithms(True, warn_only=True)
    channel.report("phase", phase="loading")
    with ExitStack() as stack:
        if spec.method.type == "reinforcement":
            run_reinforcement(spec, job_dir, channel, stack)
        else:
            team = stack.enter_context(Team.start(spec, job_dir))
            job = SupervisedJob if spec.method.type == "supervised" else PreferenceJob
            job(spec, job_dir, channel, team).execute()

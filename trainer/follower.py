"""``python -m trainer.follower JOBDIR RANK STORE LEADER``: a process of a data-parallel team.

It holds a copy of the model, runs its share of each update with the weights that it is sent, and
ends when its leader does. See :mod:`trainer.parallel`.
"""

import argparse
import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

import torch

from trainer.group import Group, GroupBroken
from trainer.job import load_policy
from trainer.parallel import Request, run_share, share, sum_gradients, threads_per_rank, weights
from trainer.policy import Policy
from trainer.reinforcement.critic import make_critic
from trainer.spec import TrainSpec

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Join the team and work until the leader is gone."""
    # Killed with its leader, also while it loads and looks at no connection.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parser = argparse.ArgumentParser(prog="trainer.follower", description=__doc__)
    parser.add_argument("job_dir", type=Path)
    parser.add_argument("rank", type=int)
    parser.add_argument("store", type=Path)
    parser.add_argument("leader", type=int, help="process id")
    args = parser.parse_args()
    if os.getppid() != args.leader:
        return  # it died before the kernel was asked, and nobody else will come to the store
    spec = TrainSpec.load(args.job_dir)
    torch.set_num_threads(threads_per_rank(spec))
    torch.use_deterministic_algorithms(True, warn_only=True)
    if torch.cuda.is_available():
        torch.cuda.set_device(args.rank % torch.cuda.device_count())
    group = Group(args.store, rank=args.rank, size=spec.processes)
    try:
        follow(group, load_policy(spec, args.job_dir))
    except GroupBroken:
        return  # the leader is gone, and with it the job's attempt


def follow(group: Group, policy: Policy) -> None:
    """Run this rank's share of every request of the leader.

    Raises:
        GroupBroken: the leader is gone.
    """
    held: dict[str, Policy] = {"policy": policy}
    while True:
        request: Request = group.broadcast()
        for name in request.sent:
            if name not in held:
                held[name] = _MAKERS[name](policy)
            group.send_tensors(weights(held[name], policy))
        models = {name: held[name] for name in request.models}
        for model in models.values():
            model.discard_gradients()
        mine = run_share(request.part, models, share(request.items, group))
        outcomes = group.gather(mine)
        if any(isinstance(outcome, Exception) for outcome in outcomes):
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        elif request.sums:
            sum_gradients(group, models)


#: How a rank makes the models beside the policy; their weights come from the leader.
_MAKERS: dict[str, Callable[[Policy], Policy]] = {
    "reference": Policy.reference,
    "critic": make_critic,
}


if __name__ == "__main__":
    main()

"""Whether the sampler holds the trainer's weights."""

import torch

from trainer.errors import WeightsMismatch
from trainer.packing import TOKEN_BUDGET
from trainer.policy import Policy
from trainer.reinforcement.examples import Example, plan
from trainer.sampling import Rollout


def mismatch(
    old_N: torch.Tensor, sampler_N: torch.Tensor, limit: float, *, staleness: int = 0
) -> tuple[float, float]:
    """Mean and largest |log π − log μ| per token, in nats.

    Args:
        staleness: updates that the trainer's policy is ahead of the sampler's.

    Raises:
        WeightsMismatch: the mean is above ``limit``, or no number: so much do two implementations
            of the same weights never differ.
    """
    gap_N = (old_N - sampler_N).abs()
    mean, largest = gap_N.mean().item(), gap_N.max().item()
    if not mean <= limit:
        cause = "the sampler does not use the trainer's weights."
        if staleness:
            cause = (
                "the policy moves too far in one step to be sampled ahead. Lower learning_rate, or "
                "set max_staleness to 0."
            )
        raise WeightsMismatch(
            f"Sampler and trainer differ by {mean:.2f} nats per token (limit {limit:g}): {cause}"
        )
    return mean, largest


@torch.no_grad()
def check_greedy(policy: Policy, rollouts: list[Rollout], limit: float) -> None:
    """Hold greedy completions of the sampler's present weights to the policy.

    Raises:
        WeightsMismatch: as above.
    """
    examples = [[Example(r, None, torch.tensor(r.completion.logprobs))] for r in rollouts]
    for batch in plan(examples, TOKEN_BUDGET):
        # Without a temperature, a sampler reports the model's own distribution.
        logp_N, _ = policy.logprobs(batch.groups, temperature=1.0)
        batch.scatter("old_logp_N", logp_N.cpu())
    flat = [example for (example,) in examples]
    mismatch(
        torch.cat([e.old_logp_N for e in flat if e.old_logp_N is not None]),
        torch.cat([e.sampler_logp_N for e in flat]),
        limit,
    )

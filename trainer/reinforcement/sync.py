"""Whether the sampler holds the trainer's weights."""

import torch

from trainer.errors import WeightsMismatch
from trainer.packing import TOKEN_BUDGET, Group
from trainer.policy import Policy
from trainer.reinforcement.examples import Example, plan
from trainer.rollout.base import RolloutEngine, Sampling
from trainer.sampling import Rollout

#: By which share of their size weights are moved to see whether the sampler follows, and how far
#: those are moved that begin as zeros.
SHAKE, SHAKE_ZEROS = 0.1, 0.2
#: Tokens sampled of each prompt while they are.
SHAKEN_TOKENS = 16
#: Share of a move's effect that may be missing in the sampler: bfloat16 misses a twentieth.
MOST_MISSING = 0.25


def mismatch(
    old_N: torch.Tensor, sampler_N: torch.Tensor, limit: float, *, staleness: int = 0
) -> tuple[float, float]:
    """Mean and largest |log π − log μ| per token, in nats.

    Args:
        staleness: steps that the trainer's policy is ahead of the sampler's.

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


@torch.no_grad()
def check_follows(policy: Policy, engine: RolloutEngine, prompts: list[list[int]]) -> None:
    """Move all trained weights far away, and see whether the sampler goes with them.

    Training moves weights by so little that a sampler which keeps one matrix as it was goes
    unnoticed for many steps. Here every one of them is moved at once; afterwards both are back
    where they were, to the last bit.

    Raises:
        WeightsMismatch: the sampler did not take over all that changed.
    """
    start = {name: master.clone() for name, master in policy.masters.items()}
    _shake(policy)
    engine.load_weights(policy)
    sampling = Sampling(1.0, SHAKEN_TOKENS, seed=0)
    found = [completion for _, completion in sorted(engine.generate(prompts, sampling))]
    groups = [Group(p, [c.token_ids]) for p, c in zip(prompts, found, strict=True)]
    sampler_N = torch.tensor([value for c in found for value in c.logprobs])
    moved_N = policy.logprobs(groups, temperature=1.0)[0].cpu()
    for name, master in policy.masters.items():
        master.copy_(start[name])
    policy.refresh()
    engine.load_weights(policy)
    start_N = policy.logprobs(groups, temperature=1.0)[0].cpu()
    missing = (sampler_N - moved_N).abs().mean().item()
    effect = (start_N - moved_N).abs().mean().item()
    if not missing <= MOST_MISSING * effect:
        raise WeightsMismatch(
            f"The sampler does not take over all of the trainer's weights: after a change worth "
            f"{effect:.2f} nats per token it differs by {missing:.2f}. Its engine cannot be used "
            "to train this model; report it with the model's name."
        )


def _shake(policy: Policy) -> None:
    draws = torch.Generator().manual_seed(0)
    for master in policy.masters.values():
        size = master.square().mean().sqrt().item()
        noise = torch.randn(master.shape, generator=draws).to(master.device)
        master.add_(noise, alpha=SHAKE * size if size > 0 else SHAKE_ZEROS)
    policy.refresh()

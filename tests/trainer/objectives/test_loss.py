"""The loss does not depend on how an update is cut into micro-batches, and stays finite."""

import dataclasses
import random
from typing import get_args, get_type_hints

import pytest
import torch

from tests.trainer.objectives.objectives import ALGORITHMS, batch, numbers, objective
from trainer.objectives.loss import TokenBatch, policy_loss
from trainer.objectives.objective import Correction, Objective
from trainer.objectives.weights import token_weights

CORRECTIONS = get_args(get_type_hints(Correction)["kind"])

#: The third completion is masked, the fifth is a single token.
LENGTHS = [7, 3, 5, 12, 1, 4, 9, 2]
MASKED = 2


def ragged(chosen: Objective) -> TokenBatch:
    """Off-policy tokens of ragged completions, with weights of the whole update."""
    draw = torch.Generator().manual_seed(3)

    def noise(scale: float) -> torch.Tensor:
        return scale * torch.randn(sum(LENGTHS), generator=draw, dtype=torch.float64)

    length_C = torch.tensor(LENGTHS)
    counted = [0 if number == MASKED else length for number, length in enumerate(LENGTHS)]
    weights = token_weights(counted, chosen, 16)
    logp_N = -3 * torch.rand(sum(LENGTHS), generator=draw, dtype=torch.float64)
    return TokenBatch(
        logp_N=logp_N,
        old_logp_N=logp_N + noise(0.2),
        sampler_logp_N=logp_N + noise(0.2),
        advantage_N=noise(1.0),
        weight_N=torch.tensor(weights, dtype=torch.float64).repeat_interleave(length_C),
        completion_N=torch.arange(len(LENGTHS)).repeat_interleave(length_C),
        reference_logp_N=logp_N + noise(0.2),
    )


def cut(tokens: TokenBatch, completions: list[int]) -> TokenBatch:
    """The tokens of some completions, in this order, as a micro-batch of their own."""
    index_N = torch.cat([(tokens.completion_N == c).nonzero().squeeze(1) for c in completions])
    fields = {f.name: getattr(tokens, f.name)[index_N] for f in dataclasses.fields(tokens)}
    lengths = torch.tensor([LENGTHS[c] for c in completions])
    fields["completion_N"] = torch.arange(len(completions)).repeat_interleave(lengths)
    return TokenBatch(**fields)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_micro_batches_add_up_to_the_update(algorithm: str, correction: str) -> None:
    chosen = objective(
        algorithm, kl_coefficient=0.1, kl_placement="loss", sampler_correction=correction
    )
    order = list(range(len(LENGTHS)))
    shuffled = random.Random(5).sample(order, len(order))
    results = []
    for parts in ([order], [[c] for c in order], [shuffled[:3], shuffled[3:5], shuffled[5:]]):
        tokens = ragged(chosen)
        tokens.logp_N.requires_grad_()
        outputs = [policy_loss(cut(tokens, part), chosen) for part in parts]
        loss = sum(output.loss for output in outputs)
        results.append((loss, *torch.autograd.grad(loss, tokens.logp_N)))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-12, atol=1e-14)
    masked_N = ragged(chosen).completion_N == MASKED
    assert not results[0][1][masked_N].any()
    assert results[0][1][~masked_N].any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_without_advantage_can_be_left_out(algorithm: str) -> None:
    chosen = objective(algorithm)
    tokens = ragged(chosen)
    left_out = (0, 4)
    zero_N = torch.isin(tokens.completion_N, torch.tensor(left_out))
    tokens = dataclasses.replace(tokens, advantage_N=tokens.advantage_N.masked_fill(zero_N, 0.0))
    tokens.logp_N.requires_grad_()
    rest = [c for c in range(len(LENGTHS)) if c not in left_out]
    results = []
    for part in (tokens, cut(tokens, rest)):
        loss = policy_loss(part, chosen).loss
        results.append((loss, *torch.autograd.grad(loss, tokens.logp_N)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("distance", [-5000.0, 5000.0])
def test_the_loss_stays_finite_however_far_the_policy_moved(
    algorithm: str, distance: float
) -> None:
    chosen = objective(
        algorithm, kl_coefficient=0.1, kl_placement="loss", sampler_correction="token_truncate"
    )
    logp_N = torch.tensor([-5001.0, -1.0], requires_grad=True)
    tokens = batch(
        logp_N,
        torch.tensor([-1.0, -1.0]),
        old_logp_N=logp_N.detach() - distance,
        sampler_logp_N=logp_N.detach() - 2 * distance,
        reference_logp_N=logp_N.detach() + distance,
    )
    output = policy_loss(tokens, chosen)
    (gradient,) = torch.autograd.grad(output.loss, logp_N)
    assert output.loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_not_finite_in_the_model_shows_in_the_loss(algorithm: str, correction: str) -> None:
    """A guard looks at the loss, so nothing may hide a broken forward pass from it."""
    tokens = batch(numbers(float("nan"), -1.0), numbers(1.0, 1.0), sampler_logp_N=numbers(-1, -1))
    chosen = objective(algorithm, sampler_correction=correction)
    assert policy_loss(tokens, chosen).loss.isnan()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_empty_micro_batch_adds_nothing(algorithm: str) -> None:
    logp_N = numbers().requires_grad_()
    assert policy_loss(batch(logp_N, numbers()), objective(algorithm)).loss.item() == 0.0

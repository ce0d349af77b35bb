"""The sliced log-probabilities against the plain ones."""

import pytest
import torch

from trainer import logprob
from trainer.logprob import chunked_logprob


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("count", [1, 5, 16])
def test_equals_log_softmax_in_value_and_gradient(
    monkeypatch: pytest.MonkeyPatch, count: int, temperature: float
) -> None:
    monkeypatch.setattr(logprob, "SLICE", 4)
    torch.manual_seed(0)
    hidden = torch.randn(count, 8, requires_grad=True)
    weight = torch.randn(33, 8, requires_grad=True)
    targets = torch.randint(0, 33, (count,))
    upstream = torch.randn(count)

    logp, entropy = chunked_logprob(hidden, weight, targets, temperature)
    (logp * upstream).sum().backward()
    got = hidden.grad, weight.grad
    hidden.grad = weight.grad = None

    plain = (hidden @ weight.T / temperature).log_softmax(-1)
    chosen = plain.gather(1, targets[:, None]).squeeze(1)
    (chosen * upstream).sum().backward()

    torch.testing.assert_close(logp, chosen, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy, -(plain.exp() * plain).sum(-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got, (hidden.grad, weight.grad), atol=1e-5, rtol=1e-4)


def test_a_frozen_head_gets_no_gradient() -> None:
    hidden = torch.randn(3, 8, requires_grad=True)
    weight = torch.randn(11, 8)
    chunked_logprob(hidden, weight, torch.tensor([1, 2, 3]), 1.0)[0].sum().backward()
    assert hidden.grad is not None
    assert weight.grad is None

"""Whether a token is the most likely one, with and without a look at the logits."""

import torch

from trainer.supervised import accuracy


def test_hits_are_those_of_all_logits() -> None:
    torch.manual_seed(0)
    weight = torch.randn(40, 8) * 2
    hidden_NH = torch.randn(300, 8)
    logits = hidden_NH @ weight.T
    # Half of the targets are the most likely ones, sure and unsure.
    targets_N = torch.where(torch.arange(300) % 2 == 0, logits.argmax(1), torch.arange(300) % 40)
    logp_N = logits.log_softmax(1).gather(1, targets_N[:, None]).squeeze(1)
    sure = (logp_N > accuracy.SURE).sum()
    assert 20 < sure < 280
    hit_N = accuracy.most_likely(hidden_NH, weight, targets_N, logp_N)
    assert hit_N.tolist() == (targets_N == logits.argmax(1)).float().tolist()


def test_of_tokens_alike_one_is_the_most_likely() -> None:
    """In bfloat16 the first two often have the same logit, and only one of them is written."""
    targets_N, logp_N = torch.arange(4), torch.full((4,), 0.25).log()
    hit_N = accuracy.most_likely(torch.ones(4, 2), torch.ones(4, 2), targets_N, logp_N)
    assert hit_N.sum() == 1

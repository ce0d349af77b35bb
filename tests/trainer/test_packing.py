"""A shared prompt changes nothing but the time."""

import pytest
import torch

from trainer.packing import Group, micro_batches, pack, split
from trainer.policy import Policy
from trainer.proof import plain_logprobs

GROUPS = [
    Group([1, 2, 3, 4, 5], [[6, 7], [8], [9, 10, 11, 12]]),
    Group([20, 21], [[22, 23, 24]]),
    Group([30, 31, 32], [[33], [33, 34]]),
]


def _plain(policy: Policy) -> torch.Tensor:
    rows = [{"prompt": g.prompt, "completion": c} for g in GROUPS for c in g.completions]
    with torch.no_grad():
        return plain_logprobs(policy.model, rows)


@pytest.mark.parametrize("policy", ["tiny_policy", "tiny_lora_policy"])
def test_packed_logprobs_equal_one_row_at_a_time(
    policy: str, request: pytest.FixtureRequest
) -> None:
    subject: Policy = request.getfixturevalue(policy)
    with torch.no_grad():
        for parameter in subject.trainable.values():
            parameter.add_(torch.randn_like(parameter) * 0.05)  # adapters begin as a no-op
        packed, _ = subject.logprobs(GROUPS, temperature=1.0)
    torch.testing.assert_close(packed, _plain(subject), atol=1e-5, rtol=1e-5)


def _grads(policy: Policy, batches: list[list[int]]) -> dict[str, torch.Tensor]:
    policy.discard_gradients()
    for indices in batches:
        logp, _ = policy.logprobs([GROUPS[i] for i in indices], temperature=0.7)
        (logp * 0.1).sum().backward()
    return {n: m.grad.clone() for n, m in policy.masters.items() if m.grad is not None}


def test_gradients_do_not_depend_on_micro_batches(tiny_policy: Policy) -> None:
    together = _grads(tiny_policy, [[0, 1, 2]])
    apart = _grads(tiny_policy, [[2], [0], [1]])
    for name, gradient in together.items():
        torch.testing.assert_close(apart[name], gradient, atol=1e-6, rtol=1e-5)
    assert any(g.abs().max() > 0 for g in together.values())


def test_targets_are_predicted_by_the_token_before_them() -> None:
    row = pack([Group([1, 2], [[3, 4], [5]]), Group([6], [[7]])])
    assert row.input_ids_S.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert row.position_ids_S.tolist() == [0, 1, 2, 3, 2, 0, 1]
    assert row.targets_N.tolist() == [3, 4, 5, 7]
    # The prompt's end predicts 3 and 5, and 3 predicts 4.
    assert row.source_N.tolist() == [1, 2, 1, 5]


def test_micro_batches_keep_the_budget_and_are_alike() -> None:
    sizes = [10, 3, 9, 50, 1, 8, 7]
    groups = [Group([0] * (n - 1), [[0]]) for n in sizes]
    batches = micro_batches(groups, 20)
    assert sorted(i for b in batches for i in b) == list(range(len(sizes)))
    loads = [sum(sizes[i] for i in batch) for batch in batches if batch != [3]]
    assert [3] in batches
    assert max(loads) <= 20
    # 38 tokens beside the long group: two batches, neither of them a remainder.
    assert len(loads) == 2
    assert min(loads) >= 18


def test_no_groups_make_no_batches() -> None:
    assert micro_batches([], 20) == []


def test_a_group_is_split_between_completions() -> None:
    group = Group([1, 2, 3], [[4] * 5, [5] * 5, [6] * 20, [7]])
    rows = split(group, 13)
    assert [row.completions for row in rows] == [[[4] * 5, [5] * 5], [[6] * 20], [[7]]]
    assert all(row.prompt == group.prompt for row in rows)

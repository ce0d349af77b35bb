"""Used-up memory halves the micro-batch, and the gradients are those of one pass."""

import pytest
import torch

from trainer.errors import OutOfMemory
from trainer.packing import TOKEN_BUDGET, Group, micro_batches, split
from trainer.policy import Policy
from trainer.watch.finding import Finding
from trainer.watch.memory import LEAST_TOKENS, MicroBatchSize, memory_used


def groups() -> list[Group]:
    return [Group([1, 2, 3 + i], [[5, 6, 7 + i], [8 + i]]) for i in range(6)]


def accumulate(policy: Policy, tokens: int, *, fails_at: int | None = None) -> int:
    """Gradients of all groups; memory runs out after ``fails_at`` micro-batches."""
    rows = [row for group in groups() for row in split(group, tokens)]
    batches = micro_batches(rows, tokens)
    for index, indices in enumerate(batches):
        if index == fails_at:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        logp, _ = policy.logprobs([rows[i] for i in indices], temperature=1.0)
        (-logp.sum()).backward()
    return len(batches)


def test_gradients_of_a_failed_try_are_not_counted(tiny_policy: Policy) -> None:
    accumulate(tiny_policy, TOKEN_BUDGET)
    whole = {n: m.grad.clone() for n, m in tiny_policy.masters.items() if m.grad is not None}
    tiny_policy.discard_gradients()
    said: list[Finding] = []
    room = MicroBatchSize(tokens=2 * LEAST_TOKENS)

    def fails_once(tokens: int) -> int:
        # The first try dies after half of its gradients are there.
        if tokens == 2 * LEAST_TOKENS:
            accumulate(tiny_policy, 16, fails_at=2)
        return accumulate(tiny_policy, 16)

    assert room.within_memory(tiny_policy, fails_once, said.append) > 2
    for name, master in tiny_policy.masters.items():
        torch.testing.assert_close(master.grad, whole[name])
    assert room.tokens == LEAST_TOKENS
    assert [f.code for f in said] == ["micro_batch_halved"]
    assert said[0].data == {"tokens": LEAST_TOKENS}


def test_a_backward_pass_that_is_broken_off_leaves_nothing(tiny_policy: Policy) -> None:
    parameter = next(iter(tiny_policy.trainable.values()))
    parameter.grad = torch.ones_like(parameter)  # memory ran out where it is moved to its master
    tiny_policy.discard_gradients()
    accumulate(tiny_policy, TOKEN_BUDGET)
    found = next(iter(tiny_policy.masters.values())).grad
    tiny_policy.discard_gradients()
    accumulate(tiny_policy, TOKEN_BUDGET)
    torch.testing.assert_close(found, next(iter(tiny_policy.masters.values())).grad)


def test_the_smaller_size_stays(tiny_policy: Policy) -> None:
    room, tried = MicroBatchSize(tokens=4096), []

    def needs(tokens: int) -> None:
        tried.append(tokens)
        if tokens > 1024:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] can't allocate memory")

    room.within_memory(tiny_policy, needs, lambda _: None)
    room.within_memory(tiny_policy, needs, lambda _: None)
    assert tried == [4096, 2048, 1024, 1024]


def test_what_never_fits_ends_the_job(tiny_policy: Policy) -> None:
    def never(_tokens: int) -> None:
        raise MemoryError

    with pytest.raises(OutOfMemory, match="micro-batches of 256 tokens"):
        MicroBatchSize().within_memory(tiny_policy, never, lambda _: None)


def test_other_errors_are_not_taken_for_it(tiny_policy: Policy) -> None:
    def bug(_tokens: int) -> None:
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        MicroBatchSize().within_memory(tiny_policy, bug, lambda _: None)


def test_used_memory_is_told_in_bytes() -> None:
    used = memory_used()
    assert used["rss_bytes"] is not None and used["rss_peak_bytes"] is not None
    assert 10**7 < used["rss_bytes"] <= used["rss_peak_bytes"] * 1.1
    assert (used["device_bytes"] is None) == (not torch.cuda.is_available())

"""Updates, references, what a sampler is given, and what is written."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.trainer.adapters import adapter
from trainer import checkpoint
from trainer.checkpoint import Beside, Progress
from trainer.errors import Diverged
from trainer.packing import Group
from trainer.policy import Policy

GROUPS = [Group([1, 2, 3], [[4, 5], [6]])]


def _learn(policy: Policy, updates: int = 2) -> None:
    if policy.optimizer is None:
        policy.start_optimizer()
    for _ in range(updates):
        logp, _ = policy.logprobs(GROUPS, temperature=1.0)
        (-logp.mean()).backward()
        policy.update(1e-2)


def _logp(policy: Policy) -> torch.Tensor:
    with torch.no_grad():
        return policy.logprobs(GROUPS, temperature=1.0)[0]


@pytest.mark.parametrize("policy", ["tiny_policy", "tiny_lora_policy"])
def test_learning_raises_the_likelihood(policy: str, request: pytest.FixtureRequest) -> None:
    subject: Policy = request.getfixturevalue(policy)
    before = _logp(subject).mean()
    _learn(subject, 10)
    assert _logp(subject).mean() > before + 0.05


def test_small_updates_survive_in_bfloat16(tiny_model: Path) -> None:
    policy = Policy.load(
        tiny_model, name="tiny", init=None, dtype=torch.bfloat16, adapter=adapter(0), seed=0
    )
    name, master = next(iter(policy.masters.items()))
    start = master.clone()
    policy.start_optimizer()
    for _ in range(3):
        logp, _ = policy.logprobs(GROUPS, temperature=1.0)
        (-logp.mean()).backward()
        policy.update(1e-6)  # far below a bfloat16 step of most weights
    assert (master != start).any()
    torch.testing.assert_close(policy.trainable[name].float(), master.bfloat16().float())


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(tiny_policy: Policy) -> None:
    tiny_policy.start_optimizer()
    before = {n: m.clone() for n, m in tiny_policy.masters.items()}
    logp, _ = tiny_policy.logprobs(GROUPS, temperature=1.0)
    (logp * float("nan")).sum().backward()
    with pytest.raises(Diverged, match="not finite"):
        tiny_policy.update(1e-2)
    assert all(torch.equal(before[n], m) for n, m in tiny_policy.masters.items())


@pytest.mark.parametrize("policy", ["tiny_policy", "tiny_lora_policy"])
def test_a_reference_stays_where_it_was(policy: str, request: pytest.FixtureRequest) -> None:
    subject: Policy = request.getfixturevalue(policy)
    reference = subject.reference()
    before = _logp(subject)
    _learn(subject)
    torch.testing.assert_close(_logp(reference), before)
    assert not torch.allclose(_logp(subject), before)


@pytest.mark.parametrize("policy", ["tiny_policy", "tiny_lora_policy"])
def test_sampler_weights_are_the_policy_in_base_names(
    policy: str, request: pytest.FixtureRequest, tiny_model: Path
) -> None:
    subject: Policy = request.getfixturevalue(policy)
    _learn(subject)
    stock = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    result = stock.load_state_dict(dict(subject.sampler_weights()), strict=False)
    assert result.unexpected_keys == []
    assert set(result.missing_keys) <= {"lm_head.weight"}  # tied
    twin = Policy(stock, subject.tokenizer, lora_rank=0)
    torch.testing.assert_close(_logp(twin), _logp(subject), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_resumed_policy_is_bit_for_bit_the_same(
    tiny_model: Path, tmp_path: Path, lora_rank: int
) -> None:
    def fresh() -> Policy:
        return Policy.load(
            tiny_model,
            name="tiny",
            init=None,
            dtype=torch.bfloat16,
            adapter=adapter(lora_rank),
            seed=0,
        )

    straight = fresh()
    _learn(straight, 2)
    checkpoint.write(tmp_path, straight, Progress(step=2, trained_tokens=6), Beside())
    _learn(straight, 2)

    resumed = fresh()
    resumed.start_optimizer()
    progress = checkpoint.read(tmp_path, resumed)
    assert progress == Progress(step=2, trained_tokens=6)
    _learn(resumed, 2)
    for name, master in straight.masters.items():
        assert torch.equal(resumed.masters[name], master), name


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_training_can_go_on_from_an_export(
    tiny_model: Path, tmp_path: Path, lora_rank: int
) -> None:
    def load(init: Path | None, rank: int) -> Policy:
        return Policy.load(
            tiny_model, name="tiny", init=init, dtype=torch.float32, adapter=adapter(rank), seed=0
        )

    policy = load(None, lora_rank)
    _learn(policy)
    policy.save_model(tmp_path)
    torch.testing.assert_close(_logp(load(tmp_path, lora_rank)), _logp(policy))
    torch.testing.assert_close(_logp(load(tmp_path, 0)), _logp(policy), atol=1e-5, rtol=1e-5)

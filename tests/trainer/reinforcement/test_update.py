"""The update is the same however its completions share forward passes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.trainer.reinforcement.learners import (
    Gradients,
    hyperparameters,
    learner,
    ragged,
    watch,
)
from trainer.errors import Diverged, OutOfMemory, WeightsMismatch
from trainer.packing import Group
from trainer.policy import Policy
from trainer.reinforcement.critic import make_critic, values
from trainer.reinforcement.examples import Example, make_examples, plan
from trainer.reinforcement.figures import Measured
from trainer.reinforcement.update import Learner
from trainer.spec import Hyperparameters

ALGORITHMS = ("grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "reinforce++", "ppo")

#: Further choices that all have to bear being cut into micro-batches.
CHOICES: list[dict[str, Any]] = [
    *({"algorithm": name} for name in ALGORITHMS),
    {"kl_coefficient": 0.1},
    {"kl_coefficient": 0.1, "kl_placement": "reward", "kl_estimator": "k1"},
    {"sampler_correction": "sequence_truncate"},
    {"sampler_correction": "geometric_mask", "correction_low": 0.9, "correction_high": 1.03},
]


def learned(
    policy: Policy, hp: Hyperparameters, budget: int, *, shift: float = 0.02
) -> tuple[Measured, Gradients, list[list[Example]]]:
    """One step without its optimiser, in micro-batches of at most so many tokens."""
    kept = Gradients(policy)
    watching = watch()
    watching.begin({"micro_batch": {"tokens": budget}})
    student = learner(policy, hp, watch=watching)
    examples = make_examples(ragged(policy, shift=shift), hp)
    return student.learn(examples, step=0), kept, examples


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: "-".join(map(str, c.values())))
def test_eight_by_one_is_one_by_eight_is_packed(
    tiny_policy: Policy, choice: dict[str, Any]
) -> None:
    hp = hyperparameters(**choice)
    packed, whole, _ = learned(tiny_policy, hp, 4096)
    for budget in (1, 14, 20):  # each completion alone, and cut in the midst of groups
        cut, parts, _ = learned(tiny_policy, hp, budget)
        assert cut.figures.tokens == packed.figures.tokens
        assert cut.figures.loss == pytest.approx(packed.figures.loss, rel=1e-5, abs=1e-7)
        assert cut.mismatch_mean == pytest.approx(packed.mismatch_mean, rel=1e-4)
        assert parts.differ(whole) < 1e-5


def test_the_budgets_do_cut_groups(tiny_policy: Policy) -> None:
    examples = make_examples(ragged(tiny_policy), hyperparameters())
    counts = [len(plan(examples, budget)) for budget in (4096, 20, 14, 1)]
    assert counts[0] == 1 and counts == sorted(counts) and counts[-1] == 12


@pytest.mark.parametrize("choice", CHOICES[:9], ids=ALGORITHMS)
def test_leaving_out_what_has_no_advantage_changes_nothing(
    tiny_policy: Policy, choice: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = hyperparameters(**choice)
    less, short, _ = learned(tiny_policy, hp, 4096)
    # The critic has nothing to say of those that take no part.
    everyone = choice["algorithm"] != "ppo"
    monkeypatch.setattr(
        Learner, "_has_gradient", lambda _, example: everyone or example.reward is not None
    )
    all_of_it, full, _ = learned(tiny_policy, hp, 4096)
    assert all_of_it.figures.loss == pytest.approx(less.figures.loss, rel=1e-5, abs=1e-7)
    assert full.differ(short) < 1e-5
    if choice["algorithm"] in ("grpo", "rloo"):
        assert less.figures.tokens == 10 < all_of_it.figures.tokens == 30


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_cut_or_not_graded_teaches_nothing(tiny_policy: Policy, algorithm: str) -> None:
    hp = hyperparameters(algorithm=algorithm)
    _, _, examples = learned(tiny_policy, hp, 4096)
    for example in (*examples[3], examples[2][1]):
        assert example.advantage == 0.0 and example.weight == 0.0


def test_cut_completions_take_part_where_they_are_not_masked(tiny_policy: Policy) -> None:
    hp = hyperparameters(mask_truncated=False)
    _, _, examples = learned(tiny_policy, hp, 4096)
    assert [e.advantage > 0 for e in examples[3]] == [True, False, False]


def test_the_penalty_for_length_shapes_the_reward_alone(tiny_policy: Policy) -> None:
    hp = hyperparameters(overlong_buffer_tokens=4, overlong_penalty=1.0)
    _, _, examples = learned(tiny_policy, hp, 4096)
    first = examples[0][0]  # five tokens of eight, one into the buffer
    assert (first.rollout.score, first.reward) == (1.0, 0.75)
    assert examples[0][1].reward == 0.0


def test_one_update_needs_no_pass_before_it(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = _count_passes(tiny_policy, monkeypatch)
    learned(tiny_policy, hyperparameters(), 4096)
    assert passes == {"with_gradient": 1, "without": 4}  # four groups are made up by the policy


def test_later_updates_look_back_at_the_policy_before_the_first(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = hyperparameters(rollout_epochs=2, minibatches=2, learning_rate=1e-2)
    student = learner(tiny_policy, hp)
    groups = ragged(tiny_policy)
    passes = _count_passes(tiny_policy, monkeypatch)
    examples = make_examples(groups, hp)
    measured = student.learn(examples, step=1)
    # The second minibatch is looked at before the first update; the first finds its own.
    assert passes == {"with_gradient": 4, "without": 1}
    assert measured.updates == 4
    for group in examples:
        for example in group:
            if example.has_advantage:
                assert example.old_logp_N is not None
                assert torch.allclose(example.old_logp_N, example.sampler_logp_N, atol=1e-5)
    assert measured.figures.ratio_max > 1.01  # the last updates did move away from it
    assert measured.mismatch_max < 1e-4


def _count_passes(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = {"with_gradient": 0, "without": 0}
    inner: Callable[..., Any] = policy.logprobs

    def counted(groups: list[Group], *, temperature: float) -> Any:
        counts["with_gradient" if torch.is_grad_enabled() else "without"] += 1
        return inner(groups, temperature=temperature)

    monkeypatch.setattr(policy, "logprobs", counted)
    return counts


def test_minibatches_share_the_groups_by_seed_and_step(tiny_policy: Policy) -> None:
    def parts(step: int) -> list[set[int]]:
        hp = hyperparameters(minibatches=2)
        examples = make_examples(ragged(tiny_policy, cut=frozenset()), hp)
        for group in examples:
            for example in group:
                example.advantage_N = torch.ones(example.length)
        found = learner(tiny_policy, hp)._minibatches(examples, step)
        return [{e.rollout.row.index for group in part for e in group} for part in found]

    assert parts(0) == parts(0)
    assert sorted(map(len, parts(0))) == [2, 2]
    assert set.union(*parts(0)) == {0, 1, 2, 3}
    assert len({str(parts(step)) for step in range(6)}) > 1


def test_a_try_that_ran_out_of_memory_is_not_counted_twice(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = hyperparameters()
    straight, whole, _ = learned(tiny_policy, hp, 1024)
    inner: Callable[..., Any] = tiny_policy.logprobs
    calls = iter((False, True, *[False] * 100))  # the second pass of the first try fails

    def scarce(groups: list[Group], *, temperature: float) -> Any:
        if torch.is_grad_enabled() and next(calls):
            raise torch.OutOfMemoryError("no memory")
        return inner(groups, temperature=temperature)

    monkeypatch.setattr("trainer.watch.memory.LEAST_TOKENS", 1)
    groups = make_examples(ragged(tiny_policy, shift=0.02), hp)
    monkeypatch.setattr(tiny_policy, "logprobs", scarce)
    kept, watching = Gradients(tiny_policy), watch()
    watching.begin({"micro_batch": {"tokens": 14}})
    again = learner(tiny_policy, hp, watch=watching).learn(groups, step=0)
    assert watching.saved()["micro_batch"]["tokens"] == 7
    assert again.figures.tokens == straight.figures.tokens
    assert again.figures.loss == pytest.approx(straight.figures.loss, rel=1e-5, abs=1e-7)
    assert kept.differ(whole) < 1e-5


def test_memory_that_never_suffices_ends_the_step(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = make_examples(ragged(tiny_policy), hyperparameters())

    def none_left(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(tiny_policy, "logprobs", none_left)
    with pytest.raises(OutOfMemory):
        learner(tiny_policy, hyperparameters()).learn(groups, step=0)


# --- guards -----------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["none", "token_truncate", "icepop", "geometric_mask"])
def test_a_sampler_with_other_weights_stops_the_step(tiny_policy: Policy, correction: str) -> None:
    hp = hyperparameters(sampler_correction=correction)
    groups = make_examples(ragged(tiny_policy, shift=0.5), hp)
    before = {n: m.detach().clone() for n, m in tiny_policy.masters.items()}
    with pytest.raises(WeightsMismatch, match=r"differ by 0.50 nats per token \(limit 0.2\)"):
        learner(tiny_policy, hp).learn(groups, step=0)
    for name, master in tiny_policy.masters.items():
        assert torch.equal(master, before[name])
        assert master.grad is not None and not master.grad.any()


def test_a_later_update_that_is_not_finite_ends_the_step(
    tiny_policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = hyperparameters(rollout_epochs=2)
    groups = make_examples(ragged(tiny_policy), hp)
    student = learner(tiny_policy, hp)
    inner: Callable[..., Any] = tiny_policy.update

    def spoil(learning_rate: float) -> float:
        norm: float = inner(learning_rate)
        with torch.no_grad():
            next(iter(tiny_policy.trainable.values())).fill_(float("nan"))
        return norm

    monkeypatch.setattr(tiny_policy, "update", spoil)
    with pytest.raises(Diverged, match="not finite"):
        student.learn(groups, step=0)


# --- the sampler's difference, and the distance to the reference -------------------------------


def test_the_kept_share_is_measured(tiny_policy: Policy) -> None:
    hp = hyperparameters(
        sampler_correction="geometric_mask", correction_low=0.99, correction_high=1.01
    )
    kept, _, _ = learned(tiny_policy, hp, 4096, shift=0.0)
    assert kept.figures.kept == kept.figures.tokens > 0
    dropped, nothing, _ = learned(tiny_policy, hp, 4096, shift=0.05)
    assert (dropped.figures.kept, dropped.figures.loss) == (0.0, 0.0)
    assert not any(grad.any() for grad in nothing.kept[0].values())


def test_the_penalty_in_the_reward_moves_advantages_and_not_the_loss(tiny_policy: Policy) -> None:
    reference = tiny_policy.reference()
    with torch.no_grad():
        for parameter in reference.model.parameters():
            parameter.mul_(1.5)
    hp = hyperparameters(
        algorithm="rloo", kl_coefficient=0.5, kl_placement="reward", kl_estimator="k1"
    )
    Gradients(tiny_policy)
    examples = make_examples(ragged(tiny_policy), hp)
    learner(tiny_policy, hp, reference=reference).learn(examples, step=0)
    first = examples[0]
    penalised = []
    for example in first:
        assert example.old_logp_N is not None and example.reference_logp_N is not None
        distance = (example.old_logp_N - example.reference_logp_N).sum().item()
        penalised.append((example.rollout.score or 0.0) - 0.5 * distance)
    for index, example in enumerate(first):
        others = [r for i, r in enumerate(penalised) if i != index]
        assert example.advantage == pytest.approx(penalised[index] - sum(others) / 2, rel=1e-4)
    # A group without spread of scores has one of penalised scores.
    assert any(example.advantage for example in examples[1])


# --- the critic -------------------------------------------------------------------------------


def test_the_critic_learns_what_to_expect(tiny_policy: Policy) -> None:
    hp = hyperparameters(algorithm="ppo", critic_learning_rate=3e-3, value_clip=0.0)
    critic = make_critic(tiny_policy)
    student = learner(tiny_policy, hp, critic=critic)
    Gradients(tiny_policy)  # the policy stays, so what is to be expected stays
    groups = ragged(tiny_policy)
    losses = [
        student.learn(make_examples(groups, hp), step=2).figures.value_loss for _ in range(30)
    ]
    assert losses[-1] < 0.2 * losses[0]
    with torch.no_grad():
        last = values(critic, [Group([40, 41, 42], [[1, 2, 3, 4, 5], [6]])])
    # The good answer is known by its last token; its first one could begin any.
    assert last[4] > 0.9 and last[5] < 0.7


def test_a_new_critic_expects_nothing_and_shares_what_is_frozen(tiny_lora_policy: Policy) -> None:
    critic = make_critic(tiny_lora_policy)
    assert not values(critic, [Group([1, 2], [[3, 4]])]).any()
    assert set(critic.masters) == {
        *tiny_lora_policy.masters,
        *(n for n in critic.masters if n.startswith("value_head") or ".value_head" in n),
    }
    frozen = {n: p for n, p in tiny_lora_policy.model.named_parameters() if not p.requires_grad}
    theirs = dict(critic.model.named_parameters())
    assert all(theirs[name] is parameter for name, parameter in frozen.items())
    trained = next(iter(tiny_lora_policy.trainable))
    assert theirs[trained] is not tiny_lora_policy.trainable[trained]

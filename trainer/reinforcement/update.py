"""The update: assign credit to a step's completions, then take one optimiser step or several.

With one update per step, the policy that is updated is the one whose log-probabilities are
computed in that pass: the old log-probabilities are the current ones, detached, and need no pass of
their own. Only what later updates look back at is computed before the first.
"""

import itertools
import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from trainer.errors import Diverged, WeightsMismatch
from trainer.objectives.credit import Judged, assign_credit
from trainer.objectives.kl import kl_estimate
from trainer.objectives.objective import Objective
from trainer.objectives.weights import token_weights
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.reinforcement import passes
from trainer.reinforcement.examples import Example, Figure, MicroBatch, plan
from trainer.reinforcement.figures import Figures, Measured
from trainer.reinforcement.passes import CriticPass, Look, Models, PolicyPass
from trainer.reinforcement.sync import mismatch
from trainer.schedule import rate_share
from trainer.spec import Hyperparameters
from trainer.watch.watch import Watch

#: Groups of examples; those of one group have the prompt in common.
Groups = list[list[Example]]


class Learner:
    """The networks of a job and the way they learn.

    Args:
        reference: what the policy is held to, or only measured against; ``None`` for neither.
        critic: says what to expect; ``None`` where the objective needs none.
        team: the processes that share the passes.
        watch: knows how large a micro-batch memory holds.
        max_mismatch: mean |log π − log μ| in nats per token above which sampler and trainer cannot
            hold the same weights.
    """

    def __init__(
        self,
        policy: Policy,
        hp: Hyperparameters,
        *,
        reference: Policy | None,
        critic: Policy | None,
        team: Team,
        watch: Watch,
        seed: int,
        max_mismatch: float,
    ) -> None:
        self.policy, self._reference, self._critic = policy, reference, critic
        self.objective = Objective.of(hp)
        self._hp, self._seed, self._max_mismatch = hp, seed, max_mismatch
        self._team, self._watch = team, watch

    def learn(self, groups: Groups, *, step: int, staleness: int = 0) -> Measured:
        """Update the policy on the groups of one step; leaves their advantages on the examples.

        Args:
            step: counts from 0.
            staleness: steps that the policy is ahead of the one that sampled.

        Raises:
            WeightsMismatch: sampler and trainer differ too much; the policy is untouched.
            Diverged: a loss or gradient is not finite; that update was not applied.
        """
        self._assign_credit(groups)
        minibatches = self._minibatches(groups, step)
        self._look_ahead(minibatches)
        share = rate_share(step + 1, self._hp.max_steps)
        measured = Measured(
            learning_rate=self._hp.learning_rate * share,
            has_reference=self._reference is not None,
            staleness=staleness,
        )
        for epoch in range(self._hp.rollout_epochs):
            if epoch > 0:
                random.Random(f"{self._seed}:{step}:{epoch}").shuffle(minibatches)
            for minibatch in minibatches:
                if any(minibatch):
                    self._update(minibatch, measured, minibatches)
                    self._update_critic(minibatch, measured, self._hp.critic_learning_rate * share)
        return measured

    # --- before the first update ---------------------------------------------------------------

    def _assign_credit(self, groups: Groups) -> None:
        part = [[e for e in group if e.reward is not None] for group in groups]
        if self.objective.kl_in_reward:
            self._look("old_logp_N", passes.policy_logp, part)
            self._look("reference_logp_N", passes.reference_logp, part)
        if self._critic is not None:
            self._look("value_N", passes.critic_values, part)
        judged = [[self._judged(example) for example in group] for group in groups]
        for group, credits in zip(groups, assign_credit(judged, self.objective), strict=True):
            for example, credit in zip(group, credits, strict=True):
                example.advantage_N, example.return_N = credit.advantage_N, credit.return_N

    def _judged(self, example: Example) -> Judged:
        kl_N = None
        if self.objective.kl_in_reward and example.reward is not None:
            assert example.old_logp_N is not None and example.reference_logp_N is not None
            estimator = self.objective.kl.estimator
            kl_N = kl_estimate(example.old_logp_N, example.reference_logp_N, estimator)
        return Judged(example.reward, example.length, kl_N, example.value_N)

    def _minibatches(self, groups: Groups, step: int) -> list[Groups]:
        """Share the groups among updates, weigh their tokens, and keep what has a gradient."""
        order = list(groups)
        count = self._hp.minibatches
        if count > 1:
            random.Random(f"{self._seed}:{step}:minibatches").shuffle(order)
        parts = [order[start::count] for start in range(count)]
        for part in parts:
            # Weights count the examples without a gradient too, so leaving those out is exact.
            examples = [example for group in part for example in group]
            lengths = [0 if e.reward is None else e.length for e in examples]
            weights = token_weights(lengths, self.objective, self._hp.max_completion_tokens)
            for example, weight in zip(examples, weights, strict=True):
                example.weight = weight
        return [[[e for e in g if self._has_gradient(e)] for g in part] for part in parts]

    def _has_gradient(self, example: Example) -> bool:
        # Without advantage there is none, unless something else pulls: the forward is saved too.
        everywhere = self.objective.kl_in_loss or self._critic is not None
        return example.reward is not None and (everywhere or example.has_advantage)

    def _look_ahead(self, minibatches: list[Groups]) -> None:
        """Compute what updates need of the networks as they are before the first of them."""
        for number, minibatch in enumerate(minibatches):
            if number > 0:  # the first update finds its old log-probabilities itself
                self._look("old_logp_N", passes.policy_logp, minibatch)
            if self._reference is not None:
                self._look("reference_logp_N", passes.reference_logp, minibatch)

    def _look(self, figure: Figure, look: Callable[[Models, Look], Tensor], groups: Groups) -> None:
        """Leave a figure on the examples that lack it."""
        missing = [[e for e in group if getattr(e, figure) is None] for group in groups]
        if not any(missing):
            return

        def forward(token_budget: int) -> None:
            batches = plan(missing, token_budget)
            items = [Look(batch.groups, self._hp.temperature) for batch in batches]
            found = self._team.map(look, self._models, items)
            for batch, values_N in zip(batches, found, strict=True):
                batch.scatter(figure, values_N)

        self._watch.within_memory(self.policy, forward)

    # --- one update ----------------------------------------------------------------------------

    def _update(self, minibatch: Groups, measured: Measured, every: list[Groups]) -> None:
        is_first = measured.updates == 0

        def accumulate(token_budget: int) -> Figures:
            batches = plan(minibatch, token_budget)
            items = [self._policy_pass(batch, is_first=is_first) for batch in batches]
            done = self._team.accumulate(passes.learn_policy, {"policy": self.policy}, items)
            if is_first:
                for batch, (_, logp_N) in zip(batches, done, strict=True):
                    batch.scatter("old_logp_N", logp_N)
            return Figures.sum(figures for figures, _ in done)

        figures = self._watch.within_memory(self.policy, accumulate)
        if not math.isfinite(figures.loss):
            self.policy.discard_gradients()
            raise Diverged(
                "The loss is not finite. Lower learning_rate or raise kl_coefficient.",
                weights_spoilt=True,
            )
        if is_first:
            self._check_mismatch(every, measured)
        measured.figures.add(figures)
        measured.grad_norm = max(measured.grad_norm, self.policy.update(measured.learning_rate))
        measured.updates += 1

    def _policy_pass(self, batch: MicroBatch, *, is_first: bool) -> PolicyPass:
        has_reference = self._reference is not None
        return PolicyPass(
            groups=batch.groups,
            temperature=self._hp.temperature,
            objective=self.objective,
            old_logp_N=None if is_first else batch.gather("old_logp_N"),
            sampler_logp_N=batch.gather("sampler_logp_N"),
            advantage_N=batch.gather("advantage_N"),
            weight_N=batch.weight_N,
            completion_N=batch.completion_N,
            reference_logp_N=batch.gather("reference_logp_N") if has_reference else None,
        )

    def _update_critic(self, minibatch: Groups, measured: Measured, learning_rate: float) -> None:
        critic = self._critic
        if critic is None:
            return

        def accumulate(token_budget: int) -> Figures:
            items = [
                CriticPass(
                    groups=batch.groups,
                    old_value_N=batch.gather("value_N"),
                    return_N=batch.gather("return_N"),
                    weight_N=batch.weight_N,
                    clip=self.objective.value_clip,
                )
                for batch in plan(minibatch, token_budget)
            ]
            return Figures.sum(self._team.accumulate(passes.learn_critic, self._models, items))

        figures = self._watch.within_memory(critic, accumulate)
        if not math.isfinite(figures.value_loss):
            critic.discard_gradients()
            raise Diverged("The critic's loss is not finite. Lower critic_learning_rate.")
        measured.figures.add(figures)
        measured.critic_grad_norm = max(measured.critic_grad_norm, critic.update(learning_rate))

    def _check_mismatch(self, every: list[Groups], measured: Measured) -> None:
        """Hold the sampler's log-probabilities to the trainer's, before anything is updated."""
        examples = list(itertools.chain.from_iterable(itertools.chain.from_iterable(every)))
        old_N = torch.cat([e.old_logp_N for e in examples if e.old_logp_N is not None])
        sampler_N = torch.cat([e.sampler_logp_N for e in examples])
        try:
            measured.mismatch_mean, measured.mismatch_max = mismatch(
                old_N, sampler_N, self._max_mismatch, staleness=measured.staleness
            )
        except WeightsMismatch:
            self.policy.discard_gradients()
            raise

    @property
    def _models(self) -> dict[str, Policy]:
        named = {"policy": self.policy, "reference": self._reference, "critic": self._critic}
        return {name: model for name, model in named.items() if model is not None}

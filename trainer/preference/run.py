"""A job that learns preferences: ``dpo`` in OpenAI's API, with ORPO and KTO as further losses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainer.means import Means
from trainer.offline import OfflineJob, in_order
from trainer.packing import TOKEN_BUDGET, Group, micro_batches
from trainer.preference.learn import Share, learn, measure, sums
from trainer.preference.losses import kto_kl
from trainer.preference.pairs import Pair, load_pairs, with_mismatches
from trainer.spec import PreferenceSpec


class PreferenceJob(OfflineJob[Pair]):
    """Prefers one answer of each row to the other.

    The reference is the policy as the job begins with it. Its log-probabilities are a few numbers a
    row, so they are computed once and no second model is held; a resumed job, which begins with the
    same weights, computes the same numbers.
    """

    method: PreferenceSpec

    def load(self, path: Path) -> list[Pair]:
        """Tokenise the pairs of a file."""
        context = self.spec.model.context_tokens
        pairs = load_pairs(path, self.policy, context=context)
        return with_mismatches(pairs, context=context) if self._loss == "kto" else pairs

    def prepare(self) -> None:
        """Ask the reference, where the loss compares with one."""
        if self._loss == "orpo":
            return
        self.channel.report("phase", phase="reference")
        self.rows = self._with_reference(self.rows)
        self.validation = self._with_reference(self.validation)

    def learn(self, rows: Sequence[Pair], token_budget: int) -> Means:
        """Add up the gradients of the mean loss over the pairs of the batch."""
        shares = self._shares(rows, token_budget)
        parts = self.team.accumulate(learn, {"policy": self.policy}, shares)
        return Means.sum(figures for part in parts for figures in part)

    def measure(self, rows: Sequence[Pair]) -> list[Means]:
        """Loss, rewards and accuracy of each pair."""
        places = micro_batches([row.group for row in rows], TOKEN_BUDGET)
        shares = self._shares(rows, TOKEN_BUDGET)
        return in_order(places, self.passes(measure, shares))

    def tokens(self, rows: Sequence[Pair]) -> int:
        """Tokens of all answers."""
        return sum(row.tokens for row in rows)

    def answers(self, rows: Sequence[Pair]) -> list[Group]:
        """Prompts with both answers."""
        return [row.group for row in rows]

    @property
    def _loss(self) -> str:
        method = self.spec.method
        assert isinstance(method, PreferenceSpec)
        return method.loss

    def _shares(self, rows: Sequence[Pair], token_budget: int) -> list[Share]:
        kl = self._distance(rows) if self._loss == "kto" else 0.0
        return [
            Share([rows[i] for i in indices], self._loss, self.method.beta, kl, len(rows))
            for indices in micro_batches([row.group for row in rows], token_budget)
        ]

    def _distance(self, rows: Sequence[Pair]) -> float:
        """How far the policy has moved on these prompts, by answers that are not theirs."""
        pairs = [(r, r.mismatched_ids) for r in rows if r.mismatched_ids is not None]
        now = self._sums([Group(pair.prompt_ids, [answer]) for pair, answer in pairs])
        before = [pair.reference[2] for pair, _ in pairs if pair.reference is not None]
        return kto_kl([logp - then for (logp,), then in zip(now, before, strict=True)])

    def _with_reference(self, rows: list[Pair]) -> list[Pair]:
        known = self._sums([row.compared for row in rows])
        return [replace(r, reference=tuple(k)) for r, k in zip(rows, known, strict=True)]

    def _sums(self, groups: list[Group]) -> list[list[float]]:
        """The summed log-probabilities of the completions of each group."""
        places = micro_batches(groups, TOKEN_BUDGET)
        items = [[groups[i] for i in indices] for indices in places]
        return in_order(places, self.passes(sums, items))

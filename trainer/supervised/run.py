"""A supervised job: imitate the assistant's messages of the training file."""

from collections.abc import Sequence
from pathlib import Path

from trainer.demonstrations import Demonstration, load_conversations
from trainer.means import Means
from trainer.offline import OfflineJob, in_order
from trainer.packing import TOKEN_BUDGET, Group, micro_batches
from trainer.supervised.loss import accumulate, measure, shares


class SupervisedJob(OfflineJob[Demonstration]):
    """Learns every assistant message of weight 1."""

    def load(self, path: Path) -> list[Demonstration]:
        """Tokenise the conversations of a file."""
        return load_conversations(path, self.policy, context=self.spec.model.context_tokens)

    def learn(self, rows: Sequence[Demonstration], token_budget: int) -> Means:
        """Add up the gradients of the mean loss over all learnt tokens of the batch."""
        return accumulate(self.team, self.policy, rows, token_budget)

    def measure(self, rows: Sequence[Demonstration]) -> list[Means]:
        """Loss and accuracy of each row."""
        places = micro_batches([row.group for row in rows], TOKEN_BUDGET)
        return in_order(places, self.passes(measure, shares(rows, TOKEN_BUDGET)))

    def tokens(self, rows: Sequence[Demonstration]) -> int:
        """The learnt tokens."""
        return sum(row.tokens for row in rows)

    def answers(self, rows: Sequence[Demonstration]) -> list[Group]:
        """Prompts with all that follows."""
        return [row.group for row in rows]

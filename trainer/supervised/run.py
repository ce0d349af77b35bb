"""A supervised job: imitate the assistant's messages of the training file."""

from collections.abc import Sequence
from pathlib import Path

from trainer.demonstrations import Demonstration, load_conversations
from trainer.means import Means
from trainer.offline import OfflineJob, in_order
from trainer.packing import TOKEN_BUDGET, Group, micro_batches
from trainer.supervised.loss import accumulate, measure, shares

#: What is learnt of one row of the file: mostly one demonstration.
Conversation = list[Demonstration]


class SupervisedJob(OfflineJob[Conversation]):
    """Learns every assistant message of weight 1."""

    def load(self, path: Path) -> list[Conversation]:
        """Tokenise the conversations of a file."""
        return load_conversations(path, self.policy, context=self.spec.model.context_tokens)

    def learn(self, rows: Sequence[Conversation], token_budget: int) -> Means:
        """Add up the gradients of the mean loss over all learnt tokens of the batch."""
        return accumulate(self.team, self.policy, _all(rows), token_budget)

    def measure(self, rows: Sequence[Conversation]) -> list[Means]:
        """Loss and accuracy of each row."""
        demonstrations = _all(rows)
        places = micro_batches([d.group for d in demonstrations], TOKEN_BUDGET)
        found = in_order(places, self.passes(measure, shares(demonstrations, TOKEN_BUDGET)))
        each = iter(found)
        return [Means.sum(next(each) for _ in row) for row in rows]

    def tokens(self, rows: Sequence[Conversation]) -> int:
        """The learnt tokens."""
        return sum(demonstration.tokens for demonstration in _all(rows))

    def answers(self, rows: Sequence[Conversation]) -> list[Group]:
        """Prompts with all that follows."""
        return [demonstration.group for demonstration in _all(rows)]


def _all(rows: Sequence[Conversation]) -> list[Demonstration]:
    return [demonstration for row in rows for demonstration in row]

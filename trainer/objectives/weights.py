"""How much each token counts in the loss of one update."""

from collections.abc import Sequence

from trainer.objectives.objective import Objective


def token_weights(lengths: Sequence[int], objective: Objective, max_length: int) -> list[float]:
    """The weight of every token of each completion.

    ``completion_mean``: the mean over completions of the mean over tokens, ``1 / (C · length)``.
    ``token_mean``: the mean over all tokens, ``1 / Σ lengths``.
    ``constant_length``: the sum over tokens by a constant, ``1 / (C · max_length)``.

    Weights are fixed for a whole update before it is cut into micro-batches, so that micro-batches,
    packing and parallel processes cannot change the loss: it is a plain sum.

    Args:
        lengths: tokens of all ``C`` completions of the update; 0 for one that takes no part, which
            gets weight 0 and still counts as a completion.
        max_length: the longest that a completion may be, in tokens.
    """
    count, total = len(lengths), sum(lengths)

    def weight(length: int) -> float:
        if objective.aggregation == "completion_mean":
            return 1.0 / (count * length)
        if objective.aggregation == "token_mean":
            return 1.0 / total
        return 1.0 / (count * max_length)

    return [weight(length) if length else 0.0 for length in lengths]

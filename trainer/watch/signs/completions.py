"""Signs of steps that teach little: completions that are cut, or that get no score."""

from typing import Any

from trainer.watch.finding import Finding

#: Share of cut completions from which the user is warned.
TRUNCATED_SHARE = 0.1


def cut(step: int, data: dict[str, Any]) -> Finding | None:
    """Whether many completions of a step were cut; ``data`` is the step's metrics."""
    share = data["truncated_share"]
    if share <= TRUNCATED_SHARE:
        return None
    return Finding(
        "truncation",
        f"{share:.0%} of the completions of step {step} were cut at max_completion_tokens; unless "
        "mask_truncated is false, they teach nothing. Raise it, or ask for shorter answers.",
        {"truncated_share": share},
    )


def without_score(step: int, data: dict[str, Any]) -> Finding | None:
    """Whether a step had nothing to learn from, as its grader had no opinion."""
    if not data["abstentions"] or data["train_mean_reward"] is not None:
        return None
    return Finding(
        "abstention",
        f"No completion of step {step} got a score: the grader abstained on {data['abstentions']}. "
        "Such steps teach nothing.",
        {"abstentions": data["abstentions"]},
    )

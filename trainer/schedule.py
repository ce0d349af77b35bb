"""The learning rate over a phase."""

#: Updates over which the learning rate rises to its full value. Adam's first updates have the full
#: size whatever the gradient's, until its running mean is full: 1 / (1 − β1) = 10 updates. A start
#: without a rise undoes what was learned before.
RISE_UPDATES = 10

#: Share of the full value that is left at the end.
FINAL_SHARE = 0.1


def rate_share(step: int, total: int) -> float:
    """Share of the full learning rate at ``step`` (from 1) of ``total``: linear up, linear down.

    A short phase rises over its first third.
    """
    rise = max(1, min(RISE_UPDATES, total // 3))
    if step <= rise:
        return step / rise
    return 1.0 - (1.0 - FINAL_SHARE) * (step - rise) / (total - rise)

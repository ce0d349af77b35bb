"""The learning rate over a phase."""

#: Share of the updates over which the learning rate rises to its full value. Adam's first steps
#: have the full size whatever the gradient's, so a start without a rise undoes what was learned.
RISE_SHARE = 0.1

#: Share of the full value that is left at the end.
FINAL_SHARE = 0.1


def rate_share(step: int, total: int) -> float:
    """Share of the full learning rate at ``step`` (from 1) of ``total``: linear up, linear down."""
    rise = max(1, round(RISE_SHARE * total))
    if step <= rise:
        return step / rise
    return 1.0 - (1.0 - FINAL_SHARE) * (step - rise) / (total - rise)

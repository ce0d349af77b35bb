"""A penalty that grows before the longest completion, so that few completions are cut."""


def overlong_penalty(length: int, *, max_length: int, buffer: int, penalty: float) -> float:
    """What is added to the score of a completion of ``length`` tokens: 0 or less.

    Nothing up to ``max_length − buffer`` tokens, then falling to ``−penalty`` at ``max_length``
    (soft overlong punishment, DAPO, arXiv:2503.14476). A buffer of 0 turns it off.
    """
    beyond = length - (max_length - buffer)
    if buffer == 0 or beyond <= 0:
        return 0.0
    return -penalty * min(beyond / buffer, 1.0)

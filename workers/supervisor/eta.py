"""When a job will be done, judged by its latest steps."""

from collections import deque

#: Steps whose mean time is taken for the coming ones; enough to hold an evaluation or two.
WINDOW = 10


class FinishEstimate:
    """Estimate the end of the reinforcement phase from the times at which its steps ended.

    A step's share of evaluations and checkpoints is in the time between two step ends.
    """

    def __init__(self) -> None:
        self._ends: deque[tuple[int, float]] = deque(maxlen=WINDOW + 1)

    def phase_began(self, step: int, now: float) -> None:
        """Note the start (unix seconds) of the phase, after ``step`` finished steps."""
        self._ends.clear()
        self._ends.append((step, now))

    def step_ended(self, step: int, total_steps: int, now: float) -> int | None:
        """Note the end of a step; the unix second at which the last one should end.

        ``None`` until a first step has been timed.
        """
        self._ends.append((step, now))
        first_step, first_time = self._ends[0]
        if step <= first_step:
            return None
        step_s = (now - first_time) / (step - first_step)
        return round(now + (total_steps - step) * step_s)

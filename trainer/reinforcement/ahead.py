"""The rollouts of each step in turn, the next step's sampled beside the update where that is asked.

While step ``s`` is updated, the sampler still holds the weights from before that update, and with
``max_staleness`` 1 it uses the time to sample step ``s + 1`` with them. What a step is trained on
depends on no clock: it is always the sample of the weights one step ago, and the first step's of
the present ones.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from graders.outcome import from_wire, to_wire
from graders.trace import Trace
from trainer.data import PromptRow
from trainer.reinforcement.rollouts import Sampled
from trainer.rollout.base import Completion
from trainer.sampling import Rollout

#: The cores of this process, looked up before a sampler binds threads to some of them.
_CORES = os.sched_getaffinity(0)


class Ahead:
    """Hands out each step's rollouts.

    Between :meth:`begin` and :meth:`finish` the sampler and the grader belong to the thread here.

    Args:
        sample: samples and grades the step of this number, from 0.
        staleness: 0 samples each step when it is asked for; 1 may sample the next one early.
        steps: how many steps the job has.
    """

    def __init__(self, sample: Callable[[int], Sampled], *, staleness: int, steps: int) -> None:
        self._sample, self._staleness, self._steps = sample, staleness, steps
        self._thread = ThreadPoolExecutor(1, "sampler", initializer=_use_all_cores)
        self._running: tuple[int, Future[Sampled]] | None = None
        self._ready: tuple[int, Sampled] | None = None

    def take(self, step: int) -> Sampled:
        """The rollouts of a step: those sampled ahead, or fresh ones."""
        if self._ready is not None and self._ready[0] == step:
            sampled, self._ready = self._ready[1], None
            return sampled
        return self._sample(step)

    def begin(self, step: int) -> None:
        """Start to sample a step, if it may be sampled early and there is such a step."""
        if self._staleness and step < self._steps:
            self._running = (step, self._thread.submit(self._sample, step))

    def finish(self) -> float:
        """Wait until the sampler is free for new weights.

        Returns:
            The seconds waited. What sampling raised is raised here.
        """
        if self._running is None:
            return 0.0
        began = time.perf_counter()
        step, future = self._running
        self._running = None
        self._ready = (step, future.result())
        return time.perf_counter() - began

    def close(self) -> None:
        """End the thread; sampling that has begun ends first, as it uses the grader."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    # --- for checkpoints: what was sampled with weights that are gone by now --------------------

    def state(self) -> dict[str, Any] | None:
        """What was sampled ahead, as JSON; ``None`` when there is nothing."""
        if self._ready is None:
            return None
        step, sampled = self._ready
        return {
            "step": step,
            "seconds": sampled.seconds,
            "weights": sampled.weights,
            "rounds": sampled.rounds,
            "rollouts": [_to_json(rollout) for rollout in sampled.rollouts],
        }

    def restore(self, state: dict[str, Any] | None, rows: list[PromptRow]) -> None:
        """Go on from what :meth:`state` returned."""
        if state is not None:
            rollouts = [_from_json(rollout, rows) for rollout in state["rollouts"]]
            sampled = Sampled(rollouts, state["seconds"], state["weights"], state["rounds"])
            self._ready = (state["step"], sampled)


def _use_all_cores() -> None:
    # A CPU sampler binds the main thread to one core, and threads inherit that.
    os.sched_setaffinity(0, _CORES)


def _to_json(rollout: Rollout) -> dict[str, Any]:
    return {
        "row": rollout.row.index,
        "token_ids": rollout.completion.token_ids,
        "logprobs": rollout.completion.logprobs,
        "truncated": rollout.completion.truncated,
        "text": rollout.text,
        "outcome": to_wire(rollout.outcome),
        "latency_s": rollout.latency_s,
        "traces": [trace.wire() for trace in rollout.traces],
    }


def _from_json(content: dict[str, Any], rows: list[PromptRow]) -> Rollout:
    return Rollout(
        rows[content["row"]],
        Completion(content["token_ids"], content["logprobs"], content["truncated"]),
        content["text"],
        from_wire(content["outcome"]),
        content["latency_s"],
        tuple(Trace.from_wire(trace) for trace in content["traces"]),
    )

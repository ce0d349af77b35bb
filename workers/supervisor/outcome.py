"""Why an attempt ended, and what becomes of its job."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from core.errors import IllegalTransition
from core.fenced import FencedWriter
from core.models import DRY_RUN, TRAINING, Job
from workers.supervisor.protocol import Ended

#: Attempts that may end without a new checkpoint before the job fails.
MAX_FAILED_ATTEMPTS = 3

#: Something outside the job must change first, so it waits for the user.
_PAUSING = frozenset({"no_disk", "grader_failures", "no_model"})
#: Another attempt would end the same way.
_FATAL = frozenset(
    {
        *("diverged", "entropy_collapse", "kl_runaway"),
        *("invalid_data", "data_gone", "no_spread", "unusable_model"),
    }
)
#: The model went astray; what it was before stands in its checkpoints.
_ASTRAY = frozenset({"diverged", "entropy_collapse", "kl_runaway"})
#: Nothing is wrong with the job: another attempt costs it nothing.
_BLAMELESS = frozenset({"paused", "store_unreachable", "worker_stopping"})

#: What follows an attempt that another one makes up for.
_GOES_ON = {
    TRAINING: "The job will go on from its last checkpoint.",
    DRY_RUN: "The dry run will start again.",
}


@dataclass(frozen=True)
class Ending:
    """Why an attempt ended.

    ``reason`` is one of the trainer's, or the supervisor's own: ``killed``, ``stalled``,
    ``store_unreachable``, ``worker_stopping``, ``worker_lost``, ``data_gone``, ``no_model``.
    """

    reason: str
    message: str
    code: str | None = None
    param: str | None = None
    data: dict[str, Any] | None = None


def explain(ended: Ended | None, exit_code: int, *, stopping: bool) -> Ending | None:
    """Why a trainer that has exited did so; ``None`` when it finished the training.

    Its last report counts; the exit code speaks for a trainer that could not send one.

    Args:
        stopping: whether this worker shuts down, and asked the trainer to pause for that.
    """
    if ended is None:
        if stopping:
            return Ending("worker_stopping", "The worker shut down during a step.")
        return Ending(*_unreported(exit_code))
    if ended.reason == "done":
        return None
    if ended.reason == "paused" and stopping:
        return Ending("worker_stopping", "The worker is shutting down.")
    data = {"examples": ended.examples} if ended.examples else None
    if ended.reason == "invalid_data":
        return Ending("invalid_data", ended.message, "invalid_training_file", "training_file", data)
    if ended.reason == "unusable_model":
        return Ending("unusable_model", ended.message, "model_not_trainable", "model")
    return Ending(ended.reason, ended.message, data=data)


def _unreported(exit_code: int) -> tuple[str, str]:
    if exit_code == -signal.SIGKILL:
        return "killed", "The trainer was killed, as systems do that run out of memory."
    if exit_code < 0:
        return "killed", f"The trainer was ended by {signal.Signals(-exit_code).name}."
    return "error", f"The trainer stopped with exit code {exit_code} and gave no reason."


def conclude(writer: FencedWriter, ending: Ending, *, failed_attempts: int, kind: str) -> None:
    """Move a job whose attempt did not finish to its next state.

    Args:
        failed_attempts: how many attempts in a row had brought no checkpoint before this one.
        kind: of the job; a dry run, which keeps nothing, fails where training would be paused.

    Raises:
        StaleFence: the job was cancelled or taken over meanwhile.
    """
    goes_on = _GOES_ON[kind]
    if ending.reason in _FATAL or (ending.reason in _PAUSING and kind == DRY_RUN):
        _fail(writer, ending, ending.message + _what_is_left(writer, ending))
    elif ending.reason in _PAUSING:
        writer.event(ending.message, level="error", data=ending.data)
        writer.transition("paused")
    elif ending.reason in _BLAMELESS:
        if ending.reason != "paused":
            writer.event(f"{ending.message} {goes_on}", level="warn")
        _set_aside(writer)
    elif failed_attempts + 1 >= MAX_FAILED_ATTEMPTS:
        _fail(writer, ending, gave_up(ending.message, kind))
    else:
        writer.event(f"{ending.message} {goes_on}", level="warn", data=ending.data)
        _set_aside(writer, failed_attempts=failed_attempts + 1)


def gave_up(last: str, kind: str) -> str:
    """The sentence of a job that failed after too many attempts."""
    if kind == DRY_RUN:
        return f"The dry run stopped {MAX_FAILED_ATTEMPTS} times. The last time: {last}"
    return (
        f"Training stopped {MAX_FAILED_ATTEMPTS} times without reaching another checkpoint. "
        f"The last time: {last}"
    )


def _what_is_left(writer: FencedWriter, ending: Ending) -> str:
    """Which model is still of use, for a job whose training went wrong."""
    last = writer.last_checkpoint() if ending.reason in _ASTRAY else None
    if last is None or last.step == 0:
        return ""
    return f" The checkpoint of step {last.step} is kept and can be used as the model {last.name}."


def _fail(writer: FencedWriter, ending: Ending, message: str) -> None:
    error = {"code": ending.code or ending.reason, "message": message, "param": ending.param}
    writer.transition("failed", error=error, data=ending.data)


def _set_aside(writer: FencedWriter, **columns: Any) -> None:
    # The user may ask for a pause, or take it back, until the very moment of the change: whichever
    # status the row has then decides.
    choices: Iterator[tuple[str, str]] = cycle((("running", "queued"), ("pausing", "paused")))
    for status, to in choices:
        try:
            return writer.transition(to, only_if=Job.status == status, **columns)
        except IllegalTransition:
            continue

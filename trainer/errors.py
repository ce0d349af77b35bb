"""Why a training process ends early.

    TrainerError
    ├── Paused             exit 3  asked to stop; a checkpoint was written
    ├── OutOfMemory        exit 4
    ├── Diverged           exit 5  a loss or gradient is not finite
    ├── GraderFailures     exit 6  too many completions could not be graded
    ├── NoDisk             exit 7
    ├── InvalidData        exit 8  rows that cannot be trained on
    ├── WeightsMismatch    exit 9  the sampler does not use the trainer's weights
    ├── NoSpread           exit 10 hardly any group has a spread of scores to learn from
    ├── EntropyCollapse    exit 11 answers have become nearly the same every time
    ├── KlRunaway          exit 12 the policy runs away from where it started
    ├── UnusableModel      exit 13 the base model or the adapter cannot be trained
    └── RankLost           exit 14 a process of the data-parallel team ended

To add one: subclass, choose a free exit code and a ``reason``, draw it above.
"""

from typing import Any


class TrainerError(Exception):
    """Root: a sentence for the user, a ``reason`` for the supervisor, an exit code."""

    reason = "error"
    exit_code = 1

    def __init__(self, message: str, *, examples: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.examples = examples or []


class Paused(TrainerError):
    """Training stopped on request after a finished step and a stored checkpoint."""

    reason, exit_code = "paused", 3


class OutOfMemory(TrainerError):
    """The machine or the accelerator has no memory left for a step."""

    reason, exit_code = "out_of_memory", 4


class Diverged(TrainerError):
    """A loss or gradient norm is not finite.

    ``weights_spoilt`` says that the loss is not, so the model as it is cannot be used.
    """

    reason, exit_code = "diverged", 5

    def __init__(self, message: str, *, weights_spoilt: bool = False) -> None:
        super().__init__(message)
        self.weights_spoilt = weights_spoilt


class GraderFailures(TrainerError):
    """The share of completions that could not be graded passed the limit."""

    reason, exit_code = "grader_failures", 6


class NoDisk(TrainerError):
    """The job directory's file system is full."""

    reason, exit_code = "no_disk", 7


class InvalidData(TrainerError):
    """A row cannot be trained on (for example, it is longer than the model's context)."""

    reason, exit_code = "invalid_data", 8


class WeightsMismatch(TrainerError):
    """Sampler and trainer disagree so much that they cannot hold the same weights."""

    reason, exit_code = "weights_mismatch", 9


class NoSpread(TrainerError):
    """Hardly any group of completions has a spread of scores: training would learn nothing."""

    reason, exit_code = "no_spread", 10


class EntropyCollapse(TrainerError):
    """The policy's entropy stayed under the job's limit."""

    reason, exit_code = "entropy_collapse", 11


class KlRunaway(TrainerError):
    """The policy's distance to the starting model stayed above the job's limit."""

    reason, exit_code = "kl_runaway", 12


class UnusableModel(TrainerError):
    """The base model, its tokenizer or the adapter asked for cannot be trained here."""

    reason, exit_code = "unusable_model", 13


class RankLost(TrainerError):
    """A process that shares the work of the updates ended, or does not answer."""

    reason, exit_code = "rank_lost", 14


def in_one_line(error: BaseException) -> str:
    """What an error says, without the lines after its first; its type where it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__

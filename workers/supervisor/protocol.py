"""What a trainer process says: one JSON object per line on its report pipe."""

import json
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class ProtocolError(ValueError):
    """The trainer sent a line that is no report."""


class _Report(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Started(_Report):
    """The trainer begins, from nothing (``step`` 0) or from a checkpoint.

    ``warm_start_step`` is set where that was written inside a warm start.
    """

    type: Literal["started"]
    step: int
    total_steps: int
    resumed: bool
    warm_start_step: int | None = None


class PhaseBegins(_Report):
    """Another part of the job begins."""

    type: Literal["phase"]
    phase: str


class Metrics(_Report):
    """The numbers of one finished step."""

    type: Literal["metrics"]
    phase: Literal["warm_start", "rl", "supervised", "dpo"]
    step: int
    total_steps: int
    data: dict[str, Any]


class Rollouts(_Report):
    """A compressed JSONL file with the samples of one step."""

    type: Literal["rollouts"]
    step: int
    split: Literal["train", "valid"]
    path: str
    count: int


class Evaluation(_Report):
    """A written evaluation report and its summary."""

    type: Literal["evaluation"]
    stage: Literal["base", "warm_start", "final"]
    step: int
    path: str
    summary: dict[str, Any]


class CheckpointWritten(_Report):
    """A folder with ``model/`` and, when ``state`` is true, ``state/``.

    ``proof`` holds the numbers of loading the model in a fresh engine, where that was done.
    """

    type: Literal["checkpoint"]
    phase: str
    step: int
    path: str
    kind: Literal["adapter", "full"]
    final: bool
    state: bool
    metrics: dict[str, Any]
    trained_tokens: int
    proof: dict[str, Any] | None = None


class ResultFile(_Report):
    """A file that the user may download from the finished job."""

    type: Literal["result_file"]
    filename: str
    path: str


class Warned(_Report):
    """A sentence that the user should see; with a code for programs, and the numbers behind it."""

    type: Literal["warning"]
    message: str
    code: str | None = None
    data: dict[str, Any] = {}


class Stopped(_Report):
    """Training ends before its last step, and what was learned is the result."""

    type: Literal["stopped"]
    reason: Literal["plateau", "max_train_seconds", "max_tokens"]
    message: str
    data: dict[str, Any]


class Progress(_Report):
    """How far the phase has come; a sign of life between steps."""

    type: Literal["progress"]
    phase: str
    done: int
    total: int


class Noted(_Report):
    """A sentence with numbers that belongs to no step."""

    type: Literal["note"]
    message: str
    data: dict[str, Any]


class Probed(_Report):
    """What a look at the first groups found, before any step."""

    type: Literal["probe"]
    level: Literal["info", "warn", "error"]
    message: str
    data: dict[str, Any]


class DryRunReported(_Report):
    """A written report of a dry run."""

    type: Literal["dry_run"]
    path: str


class Ended(_Report):
    """The last report: why the trainer stops."""

    type: Literal["ended"]
    reason: Literal[
        "done",
        "paused",
        "out_of_memory",
        "diverged",
        "grader_failures",
        "no_disk",
        "invalid_data",
        "weights_mismatch",
        "no_spread",
        "entropy_collapse",
        "kl_runaway",
        "unusable_model",
        "rank_lost",
        "error",
    ]
    message: str
    examples: list[dict[str, Any]] = []


Report = Annotated[
    Started
    | PhaseBegins
    | Metrics
    | Rollouts
    | Evaluation
    | CheckpointWritten
    | ResultFile
    | Warned
    | Stopped
    | Progress
    | Noted
    | Probed
    | DryRunReported
    | Ended,
    Field(discriminator="type"),
]
_reports: TypeAdapter[Report] = TypeAdapter(Report)


def parse(line: bytes) -> Report:
    """Read one report.

    Raises:
        ProtocolError: not JSON, not a known report, or a number that is not finite (a database
            column for JSON refuses those).
    """
    try:
        return _reports.validate_python(parse_json(line))
    except (ValidationError, ValueError) as error:
        raise ProtocolError(f"The trainer sent a line that is no report: {error}") from error


def parse_json(text: bytes) -> Any:
    """Read JSON that may be stored; raises ValueError for NaN and infinity."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")

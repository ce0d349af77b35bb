"""The report of a dry run, exactly as `GET /v1/fine_tuning/dry_runs/{id}` shows it.

The trainer writes it; these models say what each figure means and refuse anything else. Shares
are between 0 and 1, times in seconds, and rows count from 0 in the order of the training file.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Interval(_Part):
    """A mean with its 95 % bootstrap interval; all null when nothing was scored."""

    mean: float | None
    low: float | None
    high: float | None


class Bin(_Part):
    """How many scores lie from `low` up to, but without, `high`; the last bin holds its `high`."""

    low: float
    high: float
    count: int


class Outcomes(_Part):
    """What grading the completions ended in; `stood_in` scores come from `invalid_grade`."""

    scores: int
    abstentions: int
    failures: int
    stood_in: int


class Solved(_Part):
    """Rows by how many of their completions scored `at` or more."""

    at: float
    never: int
    sometimes: int
    always: int
    share: Interval


class Groups(_Part):
    """Groups, the completions of one row, by whether a job could learn from them.

    A group teaches when its completions score differently. One without spread is `all_solved`,
    has the same lower score throughout (`all_same`), or has fewer than two completions that can
    be compared, because they were cut or could not be graded (`too_few`).
    """

    total: int
    with_spread: int
    without_spread: int
    share_without_spread: float
    all_solved: int
    all_same: int
    too_few: int


class RowResult(_Part):
    """One row: the score of each completion (null: none), and how many were solved or lost."""

    row: int
    prompt: str
    scores: list[float | None]
    solved: int
    truncated: int
    failed: int
    spread: bool


class Example(_Part):
    """One completion, cut to a length that can be read."""

    row: int
    text: str
    detail: str


class FailureGroup(_Part):
    """Failures of one kind in one grader; `stood_in` of them became a score by `invalid_grade`."""

    kind: str
    flag: str
    meaning: str
    blame: Literal["sample", "grader", "data", "infrastructure"]
    grader: str | None
    count: int
    stood_in: int
    share: float
    examples: list[Example]


class Truncation(_Part):
    """Completions that were cut at `max_completion_tokens`: a job learns nothing from them."""

    count: int
    share: float


class Lengths(_Part):
    """Tokens of the completions, and the `limit` that they were sampled under."""

    mean: float
    p10: float
    p50: float
    p90: float
    longest: int
    limit: int


class Disagreement(_Part):
    """How alike the votes of one judge were: 1 is the same, 0 unrelated, -1 the opposite."""

    grader: str
    judged: int
    agreement_mean: float
    agreement_p10: float
    examples: list[Example]


class Latency(_Part):
    """Seconds that one grade took."""

    mean: float
    p50: float
    p95: float


class Tokens(_Part):
    """Tokens that a judge read and wrote; `cached` are part of `prompt`."""

    prompt: int
    completion: int
    cached: int


class GraderUse(_Part):
    """One grader, or one child of a `multi`: its scores, speed and use of a judge."""

    grader: str
    type: str
    model: str | None
    runs: int
    score_mean: float | None
    latency_s: Latency
    attempts: int
    cached: int
    tokens: Tokens | None


class SuspiciousPair(_Part):
    """A completion that scored high although it is unlike the reference."""

    row: int
    text: str
    reference: str
    score: float
    similarity: float
    hints: list[str]


class Suspicious(_Part):
    """The pairs to read first; `how` says how reference and similarity were chosen.

    `reference` is the variable that was taken, such as `item.answer`; null when rows have none.
    """

    reference: str | None
    how: str
    compared: int
    pairs: list[SuspiciousPair]


class Hint(_Part):
    """Why a comparison failed that nearly held, and for how many completions."""

    hint: str
    count: int
    examples: list[Example]


class Range(_Part):
    """From, to."""

    low: float
    high: float


class Plan(_Part):
    """What the full job would do with the same method."""

    steps: int
    prompts_per_step: int
    completions_per_prompt: int
    training_completions: int
    evaluation_completions: int


class Measured(_Part):
    """The rates that the estimate is made from; `update_tokens_per_s` is null when unmeasured."""

    sampling_completions_per_s: float
    sampling_tokens_per_s: float
    update_tokens_per_s: float | None
    grading_latency_mean_s: float


class Cost(_Part):
    """Price of the worker's time; that of judges stands with their tokens."""

    low: float
    high: float
    currency: str
    price_per_hour: float


class JudgeTokens(_Part):
    """Tokens that the full job would have one judge model read and write.

    `cost` is in US dollars, and null where the operator gave no prices for the judge.
    """

    model: str
    low: int
    high: int
    prompt_share: float
    cost: Range | None


class Estimate(_Part):
    """Time and cost of the full job, as a range; `made_of` says how it was made, in sentences."""

    plan: Plan
    measured: Measured
    seconds: Range
    cost: Cost | None
    judge_tokens: list[JudgeTokens]
    made_of: list[str]


class Verdict(_Part):
    """What the figures mean for a job; a `bad` one would be refused before its first step."""

    level: Literal["good", "warn", "bad"]
    message: str
    advice: list[str]


class DryRunReport(_Part):
    """Everything that a dry run found out."""

    version: Literal[1]
    verdict: Verdict
    rows: int
    rows_in_file: int
    samples_per_row: int
    completions: int
    temperature: float
    outcomes: Outcomes
    score: Interval
    histogram: list[Bin]
    solved: Solved
    groups: Groups
    truncation: Truncation
    lengths: Lengths
    failures: list[FailureGroup]
    disagreement: list[Disagreement]
    graders: list[GraderUse]
    suspicious: Suspicious
    hints: list[Hint]
    by_row: list[RowResult]
    estimate: Estimate

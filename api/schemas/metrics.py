"""The curves of a job's metrics."""

from typing import Literal

from pydantic import BaseModel, Field


class CurvePoint(BaseModel):
    """One number of one step."""

    step: int
    value: float


class MetricSeriesObject(BaseModel):
    """One curve. `points` are pairs of step and value, in order; a null value is a gap."""

    name: str
    points: list[tuple[int, float | None]]
    downsampled: bool = Field(description="Whether fewer points are shown than there are steps.")
    steps: int = Field(description="Steps at which the metric was reported, gaps included.")
    gaps: int = Field(description="Steps at which it was reported without a value.")
    lowest: CurvePoint | None
    highest: CurvePoint | None


class MetricPhase(BaseModel):
    """The steps of one phase of the job that have metrics."""

    phase: str
    steps: int
    first_step: int
    last_step: int


class MetricsObject(BaseModel):
    """Curves of one phase; `available` names all that there are, `phases` the other phases."""

    object: Literal["fine_tuning.job.metrics"] = "fine_tuning.job.metrics"
    fine_tuning_job_id: str
    phase: str
    max_points: int
    series: list[MetricSeriesObject]
    available: list[str]
    phases: list[MetricPhase]

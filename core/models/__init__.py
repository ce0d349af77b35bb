"""The tables. Times are unix seconds.

`seq` tells rows of one second apart, the later one having the larger number.
"""

from core.models.access import ApiKey, AuditEntry, CheckpointPermission, IdempotentRequest, Project
from core.models.base import Base, Json, RowNumber
from core.models.evals import Eval, EvalItem, EvalRun
from core.models.files import File, FileReport, Upload, UploadPart
from core.models.jobs import (
    DRY_RUN,
    TRAINING,
    Checkpoint,
    Event,
    Job,
    Metric,
    MetricPoint,
    MetricSeries,
    Rollout,
    Sample,
)
from core.models.messages import Outbox, WebhookDelivery, WebhookEndpoint

__all__ = [
    "DRY_RUN",
    "TRAINING",
    "ApiKey",
    "AuditEntry",
    "Base",
    "Checkpoint",
    "CheckpointPermission",
    "Eval",
    "EvalItem",
    "EvalRun",
    "Event",
    "File",
    "FileReport",
    "IdempotentRequest",
    "Job",
    "Json",
    "Metric",
    "MetricPoint",
    "MetricSeries",
    "Outbox",
    "Project",
    "Rollout",
    "RowNumber",
    "Sample",
    "Upload",
    "UploadPart",
    "WebhookDelivery",
    "WebhookEndpoint",
]

"""Words of the document that no route says: its introduction, the tags, common parameters."""

from typing import Any

DESCRIPTION = """\
Reinforcement fine-tuning behind OpenAI's API: the official SDKs work when only the address and the
key change.

Every path under `/v1` needs `Authorization: Bearer <key>`. A key belongs to one project and sees
nothing of another. Every error has the form of `ErrorResponse`; every answer carries
`x-request-id`. A field that nothing reads is refused by name.

A request that creates something may carry `Idempotency-Key`: sent again with the same key, it is
carried out once and answered the same. Where the operator set limits, `x-ratelimit-…` headers tell
what is left.
"""

#: Last parts of paths that have a tag of their own, wherever they stand.
PARTS = {
    "metrics": "Results",
    "samples": "Results",
    "artifacts": "Results",
    "proof": "Results",
    "stream": "Events",
}

#: Path prefix → tag, the longest one counts. A tag's description stands in `TAGS`.
PREFIXES = {
    "/v1/files": "Files",
    "/v1/uploads": "Uploads",
    "/v1/fine_tuning/jobs": "Fine-tuning",
    "/v1/fine_tuning/checkpoints": "Checkpoints",
    "/v1/fine_tuning/dry_runs": "Dry runs",
    "/v1/fine_tuning/alpha/graders": "Graders",
    "/v1/evals": "Evals",
    "/v1/models": "Models",
    "/v1/chat": "Inference",
    "/v1/completions": "Inference",
    "/v1/webhook": "Webhooks",
    "/v1/organization": "Projects",
    "/v1/projects": "Projects",
    "/v1/project": "Projects",
    "/v1/organization/retention": "Results",
    "/v1/audit": "Projects",
    "/health": "Service",
}

TAGS = {
    "Files": "Training data and results: upload, read, delete.",
    "Uploads": "Large files, sent in parts.",
    "Fine-tuning": "Jobs that train a model, with their events and checkpoints.",
    "Results": "Figures, samples and weights of jobs, and how long they are kept.",
    "Events": "Events as they happen.",
    "Checkpoints": "Who else may use what a job has stored.",
    "Dry runs": "What the grader makes of a model before anything is trained.",
    "Graders": "Check a grader, and try it on one text.",
    "Evals": "Grade models, or texts that are already there, on rows of data.",
    "Models": "Base models, trained models and checkpoints.",
    "Inference": "Ask a model.",
    "Webhooks": "Be told when something ends.",
    "Projects": "Keys, limits and what was changed.",
    "Service": "Whether the service works.",
}

#: Descriptions of parameters whose route gives none.
PARAMETERS = {
    "after": "The id of the last element seen; the page starts behind it.",
    "limit": "How many elements one page holds; brought into the range that the server serves.",
    "order": "`asc` for oldest first, `desc` for newest first.",
    "order_by": "Which time orders the list.",
    "owner_project_access": "Only keys whose owner still has access, or has it no more.",
    "before": "The id of the first element seen; the page ends in front of it.",
    "status": "Only objects in this state.",
    "include_archived": "Whether projects that were archived are listed too.",
    "purpose": "Only files that were uploaded for this purpose.",
    "metadata": "Only objects with these pairs: `metadata[key]=value`; `metadata=null` stands for"
    " objects without metadata.",
    "fine_tuning_job_id": "The id of a fine-tuning job, `ftjob-…`.",
    "fine_tuned_model_checkpoint": "The name of a checkpoint, `ft:…`.",
    "permission_id": "The id of a permission, `cp_…`.",
    "dry_run_id": "The id of a dry run.",
    "checkpoint_id": "The id of a checkpoint, `ftckpt_…`.",
    "file_id": "The id of a file, `file-…`.",
    "upload_id": "The id of an upload, `upload_…`.",
    "key_id": "The id of an API key, `key_…`.",
    "model": "The name of a model; it may contain `:` and `/`.",
    "eval_id": "The id of an eval, `eval_…`.",
    "run_id": "The id of a run of the eval, `evalrun_…`.",
    "output_item_id": "The id of an output item, `outputitem_…`.",
    "webhook_endpoint_id": "The id of a webhook endpoint.",
    "delivery_id": "The id of a delivery.",
    "project_id": "The id of a project, `proj_…`.",
    "sample_id": "The id of a sample, `sample_…`.",
    "form": "Which weights: `adapter`, `full` or `merged`.",
    "path": "The file's path among the weights.",
    "kind": "What the file is checked for; left out, what its rows look like.",
    "max_points": "The most points that one curve is given.",
    "min_step": "The first step that counts.",
    "max_step": "The last step that counts.",
    "step": "Only this step.",
    "row": "Only this row of the file, counted from 0.",
    "group": "Only this group of the step, counted from 0.",
    "split": "Only samples of training, or only those of validation.",
    "phase": "Only this phase of the job.",
    "outcome": "Only gradings that ended so.",
    "truncated": "Only completions that were cut, or only those that were not.",
    "text": "Only samples that hold this text.",
    "min_reward": "The lowest reward that counts.",
    "max_reward": "The highest reward that counts.",
    "min_score": "The lowest score of the grader that counts.",
    "max_score": "The highest score of the grader that counts.",
    "expires_in": "For how many seconds the addresses work.",
    "within_days": "How many days to look ahead.",
    "event_types[]": "Only changes of these types.",
    "project_ids[]": "Only changes in these projects.",
    "actor_ids[]": "Only changes by these keys.",
    "resource_ids[]": "Only changes to the objects with these ids.",
    "effective_at": "Only changes between these unix times: `effective_at[gte]=1800000000`.",
}

_METADATA = {
    "name": "metadata",
    "in": "query",
    "style": "deepObject",
    "explode": True,
    "schema": {"type": "object"},
}
_MOMENT = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999}
_EFFECTIVE_AT = {
    "name": "effective_at",
    "in": "query",
    "style": "deepObject",
    "explode": True,
    "schema": {
        "type": "object",
        "properties": dict.fromkeys(("gt", "gte", "lt", "lte"), _MOMENT),
        "additionalProperties": False,
    },
}
_LISTS = [
    {"name": name, "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}
    for name in ("event_types[]", "project_ids[]", "actor_ids[]", "resource_ids[]")
]

#: Parameters that a route reads from the URL by itself, by the name of its function.
UNSEEN: dict[str, list[dict[str, Any]]] = {
    "list_jobs": [_METADATA],
    "list_dry_runs": [_METADATA],
    "list_audit_logs": [*_LISTS, _EFFECTIVE_AT],
}

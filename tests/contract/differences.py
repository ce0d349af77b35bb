"""Where this server differs from OpenAI on purpose: the one list, each with its reason.

`docs/migrating-from-openai.md` shows the same list to users, word for word. A difference that
shows in an answer's schema carries the patches that OpenAI's document needs, so that everything
beyond them is still a violation.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Patch:
    """Add `add` to what stands in OpenAI's document at the JSON pointer `at`.

    Members are appended to a list and merged into an object.
    """

    at: str
    add: Any


@dataclass(frozen=True)
class Difference:
    """What happens here, what at OpenAI, and why."""

    here: str
    openai: str
    reason: str
    patches: tuple[Patch, ...] = field(default=())


#: An object whose values are graders, and a grader of a type that OpenAI lacks.
MAP_OF_GRADERS = {
    "type": "object",
    "additionalProperties": {"type": "object", "required": ["type", "name"]},
}
OWN_GRADER = {
    "type": "object",
    "required": ["type", "name"],
    "properties": {
        "type": {"enum": ["number", "regex", "json_schema", "relative_model", "endpoint"]}
    },
}

LABELS = {
    "type": "object",
    "required": ["type", "name", "labels"],
    "properties": {"type": {"enum": ["label_model"]}},
}

MULTI_CRITERION = {
    "type": "object",
    "required": ["type", "name", "graders"],
    "properties": {"type": {"enum": ["multi"]}, "graders": MAP_OF_GRADERS},
}


DIFFERENCES = (
    Difference(
        "fields that are unknown, or cannot be honoured, are refused by name, in chat too",
        "partly ignored",
        "an option that is silently ignored costs a training run",
    ),
    Difference(
        "`method.supervised` and `method.dpo` have `limits` and more hyperparameters, among them a"
        " choice of `loss`",
        "–",
        "this server's own",
    ),
    Difference(
        "a reinforcement job may begin with a supervised phase, `warm_start`",
        "a job of its own",
        "a model that never gets a score learns nothing from scores",
    ),
    Difference(
        "`validation_file` is optional",
        "required in practice",
        "small experiments; without it nothing is measured on held-out rows",
    ),
    Difference(
        "`pausing` is a state of its own, and `paused` is sent",
        "`paused` in examples only",
        "a step takes time to finish; SDKs that check statuses strictly know neither",
        (Patch("/components/schemas/FineTuningJob/properties/status/enum", ["pausing", "paused"]),),
    ),
    Difference(
        "`method.reinforcement` has `dry_run`, `limits`, `monitor_grader`, `allow_no_spread` and"
        " more hyperparameters",
        "–",
        "this server's own",
    ),
    Difference(
        "a job without a spread of scores fails before its first step (`no_spread`)",
        "trains",
        "it would learn nothing; [dry runs](dry-runs.md#before-a-jobs-first-step) say what to do",
    ),
    Difference(
        "`response_format` of a job does not constrain sampling; a warning says so",
        "samples follow the schema",
        "the grader judges the form, which the model then learns",
    ),
    Difference(
        "a grader that reads tool calls of the completion is refused",
        "graded",
        "completions are not parsed for tool calls in training yet",
    ),
    Difference(
        "rows with images are refused",
        "vision models train on them",
        "the base models read text",
    ),
    Difference(
        "calls to learn are refused where the base model's chat template cannot write them",
        "learnt",
        "a model learns what it would write",
    ),
    Difference(
        "a supervised row does not begin with an answer to learn",
        "not documented",
        "no model can be shown an empty conversation",
    ),
    Difference(
        "`function_call` and messages of role `function` are refused in rows",
        "older forms of `tool_calls` and `tool`",
        "chat templates know the newer forms only",
    ),
    Difference(
        "`batch_size` of supervised and `dpo` jobs is at most the rows there are",
        "not documented",
        "an epoch is never less than a step",
    ),
    Difference(
        "`hyperparameters` is always an object, `error` is `null` when there is none",
        "sometimes absent or `{}`",
        "the SDKs' strict mode rejects OpenAI's own forms",
    ),
    Difference(
        "a `multi` grader is shown as a map, whatever form was sent",
        "map, list or single in different places",
        "the map is what the service really uses; SDKs that check types strictly know only a single"
        " grader there",
        (
            Patch(
                "/components/schemas/GraderMulti/properties/graders/oneOf",
                [MAP_OF_GRADERS],
            ),
        ),
    ),
    Difference(
        "there are graders `number`, `regex`, `json_schema`, `relative_model` and `endpoint`",
        "`endpoint` in a preview of Azure's, the others not",
        "[graders](graders.md) says what they are for",
        (
            Patch(
                "/components/schemas/FineTuneReinforcementMethod/properties/grader/oneOf",
                [OWN_GRADER],
            ),
            Patch(
                "/components/schemas/ValidateGraderResponse/properties/grader/oneOf", [OWN_GRADER]
            ),
        ),
    ),
    Difference(
        "`label_model` grades jobs too",
        "it grades evals, and a part of a `multi`",
        "a label that passes is a reward of 1",
        (
            Patch("/components/schemas/ValidateGraderResponse/properties/grader/oneOf", [LABELS]),
            Patch(
                "/components/schemas/FineTuneReinforcementMethod/properties/grader/oneOf", [LABELS]
            ),
        ),
    ),
    Difference(
        "a state conflict is 400 with `x-should-retry: false`",
        "not documented",
        "SDKs repeat a 409",
    ),
    Difference(
        "`suffix` takes letters, digits, `.`, `_` and `-`",
        "rewrites other characters",
        "the name stays what was written; `:` and `/` would break it",
    ),
    Difference(
        "`integrations` must be empty",
        "`wandb`",
        "metrics are in events, result files and the dashboard; nothing leaves the house",
    ),
    Difference(
        "a null `expires_at` or `status_details` of a file is left out",
        "`null`",
        "OpenAI's schema has no null there",
    ),
    Difference(
        "`first_id` and `last_id` of an empty page are empty texts",
        "in its document a text for files and evals, a text or `null` elsewhere",
        "one rule for all lists",
    ),
    Difference(
        "a file's purpose may be `evals`",
        "taken in requests, missing among the answers",
        "a file says what it was uploaded for",
        (Patch("/components/schemas/OpenAIFile/properties/purpose/enum", ["evals"]),),
    ),
    Difference(
        "a file's content is sent as bytes, in ranges where asked",
        "bytes too, but its document says a JSON string",
        "the SDKs read bytes",
        (
            Patch(
                "/paths/~1files~1{file_id}~1content/get/responses",
                {
                    "200": {"content": {"application/octet-stream": {}}},
                    "206": {"content": {"application/octet-stream": {}}},
                    "304": {},
                },
            ),
        ),
    ),
    Difference(
        "evals take graders `number`, `regex`, `json_schema`, `endpoint` and `multi` too",
        "five types of criteria",
        "what grades a job can test any model, and a job's own eval shows the job's grader",
        (
            Patch(
                "/components/schemas/Eval/properties/testing_criteria/items/oneOf",
                [OWN_GRADER, MULTI_CRITERION],
            ),
        ),
    ),
    Difference(
        "a message of a run's template comes back as it was sent",
        "the same, but in its document a plain message is two exclusive alternatives at once",
        "no message could satisfy both",
        tuple(
            Patch(
                f"/components/schemas/{name}/properties/input_messages/oneOf/0"
                "/properties/template/items",
                {"oneOf": [{"type": "object", "required": ["role", "content"]}]},
            )
            for name in ("CreateEvalCompletionsRunDataSource", "CreateEvalResponsesRunDataSource")
        ),
    ),
    Difference(
        "an unknown eval or run is an error in the usual envelope",
        "a bare error object, in its document",
        "the SDKs read the envelope",
    ),
    Difference(
        "a criterion that could not be graded stands in an output item's `errors`, and the item's"
        " `status` is `error`",
        "a score for every criterion",
        "a failed grading is not a score of 0",
    ),
    Difference(
        "a run is canceled at `…/runs/{id}` and at `…/runs/{id}/cancel`",
        "the first in its document, the second in its SDKs",
        "both are in use",
    ),
    Difference(
        "until the last one, chunks of `/v1/completions` have `finish_reason: null`",
        "the same; its document knows no stream there, and its SDKs' types no null",
        "a reason that is not there yet cannot be told",
        (
            Patch(
                "/paths/~1completions/post/responses/200/content",
                {
                    "text/event-stream": {
                        "schema": {
                            "type": "object",
                            "required": ["id", "object", "created", "model", "choices"],
                        }
                    }
                },
            ),
        ),
    ),
    Difference(
        "with `echo` and `logprobs`, the log-probability of a prompt's first token is `null`",
        "the same; its document allows numbers only",
        "nothing stands before it",
        tuple(
            Patch(
                "/components/schemas/CreateCompletionResponse/properties/choices/items/properties"
                f"/logprobs/anyOf/0/properties/{field}/items",
                {"type": [kind, "null"]},
            )
            for field, kind in (("token_logprobs", "number"), ("top_logprobs", "object"))
        ),
    ),
    Difference(
        "images in chat must lie inside of the request (`data:image/…`)",
        "fetched from their addresses",
        "the server calls nobody for a user",
    ),
    Difference(
        "`suffix` of `/v1/completions` is refused",
        "one old model fills in",
        "these models only write on",
    ),
    Difference(
        "tools in chat are functions; `custom` ones are refused",
        "both",
        "a grammar of the caller's own cannot be checked for its cost",
    ),
    Difference(
        "runs take no source of type `stored_completions` or `responses`",
        "they read what its other endpoints stored",
        "this server stores no answers; a file takes their place",
    ),
    Difference(
        "`store` must be `false`, and there are no stored completions to list",
        "stores on demand",
        "what users ask a model stays between them and the model",
    ),
    Difference(
        "the audit log has types for every change, as `file.created`",
        "types for its organisation's affairs",
        "every change is logged; SDKs that check types strictly know only OpenAI's",
    ),
    Difference(
        "an unknown `after` gives an empty page",
        "not documented",
        "starting over would make a client loop for ever",
    ),
    Difference(
        "result files are plain CSV and JSON",
        "base64",
        "people open them",
    ),
    Difference(
        "JSON with duplicate keys, NaN, lone surrogates or U+0000 is refused",
        "accepted in part",
        "it cannot be stored, or means two things",
    ),
    Difference(
        "a training file is checked line by line at the upload",
        "at the upload, first error only",
        "every line that is no JSON object; the rows by `/validation`, or when a job reads them",
    ),
    Difference(
        "no safety evaluation, no `403 training_not_available`",
        "both",
        "the operator owns the machine and answers for what is trained on it",
    ),
)

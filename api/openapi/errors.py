"""The errors of the document: each operation lists those of the table that it can answer with."""

from typing import Any

from api.errors import error_body

#: The envelope of every error; `api.errors` writes it.
SCHEMAS: dict[str, Any] = {
    "ErrorResponse": {
        "type": "object",
        "description": "What every request that fails answers with.",
        "properties": {"error": {"$ref": "#/components/schemas/Error"}},
        "required": ["error"],
        "additionalProperties": False,
    },
    "Error": {
        "type": "object",
        "description": "One sentence, the kind of error, and what in the request it is about.",
        "properties": {
            "message": {"type": "string", "description": "What is wrong, and the way out."},
            "type": {
                "type": "string",
                "enum": [
                    "invalid_request_error",
                    "requests",
                    "tokens",
                    "insufficient_quota",
                    "server_error",
                ],
                "description": "OpenAI's kind of error; at 429, what there was too much of.",
            },
            "param": {
                "type": ["string", "null"],
                "description": "The path of the field or parameter that is to blame.",
            },
            "code": {
                "type": ["string", "null"],
                "description": "A name for programs, as `model_not_found`.",
            },
        },
        "required": ["message", "type", "param", "code"],
        "additionalProperties": False,
    },
}

#: Status → name of the response, its description, and an example of message, param and code.
TABLE: dict[int, tuple[str, str, str, str | None, str | None]] = {
    400: (
        "BadRequest",
        "Something in the request is wrong, or the object's state does not allow it.",
        "Missing required parameter: 'training_file'.",
        "training_file",
        "missing_required_parameter",
    ),
    401: (
        "Unauthorized",
        "There is no API key, or it is unknown, revoked or expired.",
        "You didn't provide an API key; send it as 'Authorization: Bearer <key>'.",
        None,
        "invalid_api_key",
    ),
    403: (
        "Forbidden",
        "The key lacks the scope, or the thing is nobody's to change.",
        "This API key lacks the scope 'write'; use a key that has it,"
        " or create one with more scopes.",
        None,
        "insufficient_scope",
    ),
    404: (
        "NotFound",
        "The project has no such thing.",
        "Could not find fine tune: ftjob-abc123. GET /v1/fine_tuning/jobs lists them.",
        "fine_tune_id",
        "fine_tune_not_found",
    ),
    409: (
        "Conflict",
        "The same request is being made at this moment, under the same `Idempotency-Key`.",
        "Another request with this Idempotency-Key is being made; wait for its answer, or send"
        " the same request again in a second.",
        None,
        "idempotency_key_in_use",
    ),
    413: (
        "TooLarge",
        "The body is larger than this path reads.",
        "The request body is larger than 4,194,304 bytes, the most this path reads;"
        " send less, or have the operator raise the limit.",
        None,
        "request_too_large",
    ),
    415: (
        "WrongType",
        "The body is of a type that this path does not read.",
        "Unsupported content type 'text/plain': send this body as 'application/json'.",
        None,
        "unsupported_content_type",
    ),
    429: (
        "TooManyRequests",
        "A limit of the project is reached; `Retry-After` says when to come back.",
        "Rate limit reached for requests of project proj_abc123: 60 per minute."
        " Please try again in 3s.",
        None,
        "rate_limit_exceeded",
    ),
    500: (
        "InternalError",
        "The server has a bug; the operator finds it in the log under the request id.",
        "The server had an error while processing your request;"
        " report the request id req_abc123 to the operator.",
        None,
        "internal_error",
    ),
    503: (
        "Unavailable",
        "A part of the service cannot be reached; nothing that is stored is lost.",
        "The database cannot be used right now; nothing was changed. Try again,"
        " and if it stays, have the operator run `rft-server doctor`.",
        None,
        "database_unavailable",
    ),
}

HEADERS = {
    "x-request-id": {
        "description": "The id of the request, as in the server's log.",
        "schema": {"type": "string"},
    },
    "x-should-retry": {
        "description": "Whether the same request may succeed when it is repeated.",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
    "retry-after": {
        "description": "Seconds after which the request may be repeated.",
        "schema": {"type": "string"},
    },
}


_KINDS = {429: "requests"}


def responses() -> dict[str, Any]:
    """Return the document's reusable error responses, each with its example."""
    return {name: _response(status) for status, (name, *_) in TABLE.items()}


def _response(status: int) -> dict[str, Any]:
    _, description, message, param, code = TABLE[status]
    headers = ["x-request-id", "retry-after" if status in (429, 503) else "x-should-retry"]
    if status == 500:
        headers = ["x-request-id"]
    return {
        "description": description,
        "headers": {name: HEADERS[name] for name in headers},
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/ErrorResponse"},
                "example": error_body(
                    status, message, param=param, code=code, kind=_KINDS.get(status)
                ),
            }
        },
    }


def add_errors(operation: dict[str, Any], *, method: str, path: str) -> None:
    """Add to `operation` the errors that it can answer with, where it names none of its own."""
    statuses = {400, 401, 403, 429, 500, 503}
    reads_model = path in ("/v1/chat/completions", "/v1/completions")
    if "{" in path or reads_model:
        statuses.add(404)
    if method == "POST":
        statuses |= {409, 413, 415}
    for status in sorted(statuses):
        reference = {"$ref": f"#/components/responses/{TABLE[status][0]}"}
        operation["responses"].setdefault(str(status), reference)

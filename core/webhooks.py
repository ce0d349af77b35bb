"""Webhooks as messages: their types, their signatures, and sending one of them.

The form is that of the Standard Webhooks specification, which OpenAI's clients verify with
`client.webhooks.unwrap`. Rows and retries are in `core.deliveries`.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.clock import now
from core.errors import InvalidRequest
from core.ids import new_id
from core.nearest import nearest
from graders.http import Outbound, OutboundError, Retry, Target, TooLarge, Unavailable
from graders.http.policy import parse_url

#: Every type of event that is sent, and what its `data.id` names.
EVENT_TYPES = {
    "fine_tuning.job.succeeded": "the fine-tuning job",
    "fine_tuning.job.failed": "the fine-tuning job",
    "fine_tuning.job.cancelled": "the fine-tuning job",
    "eval.run.succeeded": "the run of an eval",
    "eval.run.failed": "the run of an eval",
    "eval.run.canceled": "the run of an eval",
}

SECRET_PREFIX = "whsec_"
_SECRET_BYTES = 32

#: Seconds that an endpoint may take for its answer, and the most of the answer that is read.
TIMEOUT_S = 15.0
MAX_ANSWER_BYTES = 64 * 1024

_USER_AGENT = "rft-service-webhooks"
_GONE = 410


def new_event(type: str, object_id: str) -> dict[str, Any]:
    """Return the body of one event; raises InvalidRequest for a type that is never sent."""
    check_event_types([type])
    return {
        "id": new_id("evt_"),
        "object": "event",
        "created_at": now(),
        "type": type,
        "data": {"id": object_id},
    }


def check_event_types(types: Iterable[str], *, param: str = "event_types") -> None:
    """Raise InvalidRequest that names the first type that is never sent, and the nearest one."""
    for type in types:
        if type not in EVENT_TYPES:
            near = nearest(type, EVENT_TYPES)
            hint = f"the nearest one is '{near}'" if near else f"it sends {', '.join(EVENT_TYPES)}"
            raise InvalidRequest(
                f"'{type}' is no event that this server sends; {hint}.",
                param=param,
                code="invalid_value",
            )


def new_secret() -> str:
    """Return a fresh signing secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of one message, `v1,` and base64; `timestamp` is unix seconds."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(
    valid_secrets: Sequence[str], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers of one message, with one signature for each secret."""
    signatures = [sign(secret, message_id, timestamp, body) for secret in valid_secrets]
    return {
        "User-Agent": _USER_AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


def valid_secrets(stored: Iterable[dict[str, Any]], at: float) -> list[str]:
    """Return those of an endpoint's stored secrets that sign at this unix time, newest first."""
    return [
        each["secret"] for each in stored if each["expires_at"] is None or each["expires_at"] > at
    ]


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt; `error` is None when the endpoint took the message.

    `status` is the HTTP status, None without an answer. `retry_after_s` is what the endpoint asked
    for. `gone` says that it wants no more messages.
    """

    status: int | None
    error: str | None = None
    retry_after_s: float = 0.0
    gone: bool = False


async def send(
    outbound: Outbound,
    url: str,
    event: dict[str, Any],
    *,
    message_id: str,
    stored_secrets: Sequence[dict[str, Any]],
) -> Outcome:
    """Sign and send a message once; every trouble is an outcome, never an exception.

    The time in the signature is that of this attempt: receivers refuse old ones.
    """
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    at = time.time()
    headers = signed_headers(valid_secrets(stored_secrets, at), message_id, int(at), body)
    try:
        target = Target(parse_url(url), headers, TIMEOUT_S, MAX_ANSWER_BYTES)
        answer = await outbound.post(target, body, retry=Retry(attempts=1, budget_s=TIMEOUT_S))
    except TooLarge as error:
        # The status line came before all those bytes, and nobody needs them.
        return _judged(error.status) if error.status else Outcome(None, error.message)
    except Unavailable as error:
        return Outcome(error.status, error.message, retry_after_s=error.retry_after_s or 0.0)
    except OutboundError as error:
        return Outcome(None, error.message)
    return _judged(answer.status)


def _judged(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome(status)
    if 300 <= status < 400:
        reason = f"status {status}: redirects are not followed, so name the final URL"
    elif status == _GONE:
        reason = f"status {status}: the endpoint wants no more messages"
    else:
        reason = f"status {status}; only 2xx takes a message"
    return Outcome(status, f"The endpoint answered with {reason}.", gone=status == _GONE)

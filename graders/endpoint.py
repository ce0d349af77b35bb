"""`endpoint`: a service of the user's own gives the score.

    {"type": "endpoint", "name": "mine", "url": "https://grader.example.com/score",
     "headers": {"Authorization": "Bearer …"}, "rate_limit": 10}

It gets `{"sample": {…}, "item": {…}, "trace_id": "…"}` by POST and answers `{"score": 0.5}`.
"""

import json
import re
import uuid
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from graders import jsontext
from graders.base import Finite, Grader, Spec
from graders.errors import GradeError, SpecError, SpecProblem
from graders.http import (
    Answer,
    Gate,
    OutboundError,
    Policy,
    Refused,
    Retry,
    Target,
    TooLarge,
    Unavailable,
)
from graders.http.headers import is_sendable
from graders.http.policy import parse_url
from graders.masking import MASK
from graders.outcome import Outcome
from graders.paths import Context
from graders.ranges import Bounds, RangePolicy, in_range
from graders.services import Services
from graders.trace import Trace

#: Most requests per second that one endpoint gets.
MAX_RATE = 50.0
#: Largest reply, in bytes.
MAX_REPLY_BYTES = 1_000_000
#: One request and three more; ten minutes for all of them, a little less than callers wait.
RETRY = Retry(attempts=4, budget_s=590.0, base_s=1.0)

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
#: Headers that belong to the connection, or to the body that is sent.
_OURS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te"}
    | {"trailer", "expect", "accept-encoding", "proxy-authorization", "proxy-connection"}
)


def _url(text: str) -> str:
    parse_url(text)
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    # None of the messages may hold a value: it is a secret.
    problems = [
        SpecProblem(f"headers.{name}", reason)
        for name, value in headers.items()
        if (reason := _header_problem(name, value))
    ]
    if problems:
        raise SpecError(problems)
    return headers


def _header_problem(name: str, value: str) -> str | None:
    if not _HEADER_NAME.fullmatch(name):
        return "This is no name of an HTTP header."
    if name.lower() in _OURS:
        return "This header is set by the service; leave it out."
    if value == MASK:
        return "This value is masked; send the header's real one."
    if not is_sendable(value):
        return "A header's value must be printable ASCII without spaces around it."
    return None


class Endpoint(Spec):
    """The spec of an `endpoint` grader."""

    type: Literal["endpoint"]
    url: Annotated[str, Field(max_length=2_000), AfterValidator(_url)]
    headers: Annotated[dict[str, str], Field(max_length=50), AfterValidator(_headers)] = Field(
        {}, repr=False
    )
    rate_limit: Annotated[Finite, Field(gt=0)] | None = None
    range: Bounds | None = None
    range_policy: RangePolicy = "fail"

    def warnings(self, *, covered: bool = False) -> list[str]:
        found = super().warnings(covered=covered)
        if self.rate_limit is not None and self.rate_limit > MAX_RATE:
            found.append(
                f"{self.name} has a rate_limit of {self.rate_limit:g}, but an endpoint gets at "
                f"most {MAX_RATE:g} requests per second."
            )
        return found

    def refusal(self, policy: Policy) -> str | None:
        """The sentence for a URL that may not be called, as far as its text tells."""
        try:
            policy.check(parse_url(self.url))
        except Refused as error:
            return error.message
        return None

    def build(self, services: Services) -> Grader:
        return _EndpointGrader(self, services)


class _EndpointGrader(Grader):
    # Far above the client's own budget: waiting for the rate limit counts here.
    time_limit_s = 3600.0

    def __init__(self, spec: Endpoint, services: Services) -> None:
        self._http = services.http
        if (refusal := spec.refusal(self._http.policy)) is not None:
            raise SpecError([SpecProblem("url", refusal)])
        self._target = Target(
            parse_url(spec.url), spec.headers, RETRY.budget_s, max_bytes=MAX_REPLY_BYTES
        )
        rate = min(spec.rate_limit or MAX_RATE, MAX_RATE)
        host = self._http.gate(self._target, concurrency=self.concurrency, per_second=MAX_RATE)
        self._gates = [Gate(concurrency=self.concurrency, per_second=rate), host]
        self._bounds, self._policy = spec.range, spec.range_policy

    async def grade(self, context: Context, trace: Trace) -> Outcome:
        answer = await self._ask(context, trace)
        trace.keep(answer.body.decode("utf-8", "replace"))
        if answer.status != 200:
            shown = trace.output[:300] if trace.output else "no text"
            detail = f"{self._target.host} answered with status {answer.status}: {shown}"
            raise GradeError("endpoint_reply_error", detail)
        value = _score(answer.body)
        kind = "endpoint_reply_error"
        return in_range(value, self._bounds, self._policy, grader=trace.grader, kind=kind)

    async def _ask(self, context: Context, trace: Trace) -> Answer:
        request = {"sample": context.sample, "item": context.item, "trace_id": str(uuid.uuid4())}
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        trace.attempts = 0
        try:
            answer = await self._http.post(self._target, body, retry=RETRY, gates=self._gates)
        except OutboundError as error:
            trace.attempts = error.attempts
            raise GradeError(_kind(error), error.message) from error
        trace.attempts = answer.attempts
        return answer


def _kind(error: OutboundError) -> str:
    if isinstance(error, Unavailable):
        return "unresponsive_reward_error" if error.timed_out else "endpoint_server_error"
    # What is left is an address that may not be called: only the grader's author can mend that.
    return "endpoint_reply_error" if isinstance(error, TooLarge) else "other_error"


def _score(body: bytes) -> float:
    try:
        reply: Any = jsontext.parse(body.decode("utf-8"))
    except (UnicodeDecodeError, jsontext.JsonTextError) as error:
        detail = f"The reply is not JSON: {error}."
        raise GradeError("endpoint_reply_error", detail) from error
    score = reply.get("score") if isinstance(reply, dict) else None
    if isinstance(score, bool) or not isinstance(score, int | float):
        detail = 'The reply must be {"score": <number>}.'
        raise GradeError("endpoint_reply_error", detail)
    return float(score)

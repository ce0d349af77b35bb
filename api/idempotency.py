"""`Idempotency-Key`: a request for a change that is repeated with it is made once.

The answer to the first one is remembered for a day and given again, word for word. What was refused
or failed has changed nothing and is not remembered: the key may be used again.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import get_principal
from api.errors import ANSWERED, answer_to, envelope
from api.parts import Parts, get_parts
from api.paths import path_of
from core import idempotency
from core.errors import InvalidRequest, RftError
from core.keys import PREFIX, Principal
from core.models import IdempotentRequest

logger = logging.getLogger(__name__)

#: Paths whose requests change nothing, or ask for no more than a model's answer.
UNAFFECTED = re.compile(r"/v1/(chat/completions|completions|fine_tuning/alpha/graders/.*)")
#: Seconds between two signs that a request is still being made; see `idempotency.LOST_S`.
RENEW_S = idempotency.LOST_S / 10
#: The longest key, in characters.
MAX_KEY = 255
#: The largest answer that is remembered, in bytes: larger than any body that an answer repeats.
MAX_ANSWER = 8 * 1024 * 1024
#: What secrets in answers begin with: they are shown once and stored nowhere.
SECRETS = (b'"' + PREFIX.encode(), b'"whsec_')


class KeyInUse(RftError):
    """A request with the same idempotency key is being made at this moment."""

    code = "idempotency_key_in_use"
    status = 409

    @property
    def headers(self) -> Mapping[str, str]:
        """Let clients wait for the first request's answer, which they then get too."""
        return {"x-should-retry": "true", "retry-after": "1"}


class Idempotency:
    """Makes each POST under /v1 that carries an `Idempotency-Key` once."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key(scope)
        if key is None:
            await self.app(scope, receive, send)
            return
        asked = Request(scope)
        parts = get_parts(asked)
        try:
            principal = await get_principal(asked, parts)
            request = _Hashed(scope, receive, principal)
            row_id, before = await run_in_threadpool(_claim, parts, principal, key)
            if before is not None:
                await request.drain()
        except ANSWERED as error:
            await answer_to(asked, error)(scope, receive, send)
            return
        if before is not None:
            await _again(before, request.fingerprint())(scope, receive, send)
            return
        answer = _Answer(parts, row_id, request, send)
        try:
            async with _renewed(parts, row_id):
                await self.app(scope, request.receive, answer.send)
        finally:
            await answer.settle()  # a request that ended without an answer gives its key back


@asynccontextmanager
async def _renewed(parts: Parts, row_id: str) -> AsyncIterator[None]:
    """Keep the key in use within the block, however long the request's body takes to come."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await run_in_threadpool(idempotency.renew, parts.sessions, row_id)
            except SQLAlchemyError as error:
                logger.warning("The use of an idempotency key was not written down: %s", error)

    task = asyncio.create_task(renew())
    try:
        yield
    finally:
        task.cancel()


class _Hashed:
    """A request whose body is hashed while it is read.

    The boundary of a form is left out: clients draw a new one for each attempt.
    """

    def __init__(self, scope: Scope, receive: Receive, principal: Principal) -> None:
        self._receive = receive
        self._complete = False
        kind, _, options = Headers(scope=scope).get("content-type", "").partition(";")
        found = re.search(r'boundary="?([^";]+)', options)
        self._boundary = found[1].encode("latin-1") if found else b""
        self._tail = b""
        self._hash = hashlib.sha256()
        # What one key may do to the organisation, another of its project may not.
        path = path_of(scope)
        who = principal.key_id if path.startswith("/v1/organization/") else ""
        query = scope["query_string"].decode("latin-1")
        for text in (who, path, query, kind.strip().lower()):
            self._hash.update(text.encode("utf-8", "surrogatepass") + b"\n")

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not self._complete:
            self._feed(message.get("body", b""))
            self._complete = not message.get("more_body", False)
        elif message["type"] == "http.disconnect":
            self._complete = True
        return message

    async def drain(self) -> None:
        """Read what is left of the body."""
        while not self._complete:
            await self.receive()

    def fingerprint(self) -> str:
        """Return what two requests must share to be the same; the body must have been read."""
        whole = self._hash.copy()
        whole.update(self._tail)
        return whole.hexdigest()

    def _feed(self, chunk: bytes) -> None:
        if not self._boundary:
            self._hash.update(chunk)
            return
        data = (self._tail + chunk).replace(self._boundary, b"")
        # The boundary may be cut by the end of the chunk.
        keep = min(len(self._boundary) - 1, len(data))
        self._hash.update(data[: len(data) - keep])
        self._tail = data[len(data) - keep :]


class _Answer:
    """An answer that is remembered before its end is sent: whoever has it can repeat the request.

    Only a good one is remembered; after any other the key is given back.
    """

    def __init__(self, parts: Parts, row_id: str, request: _Hashed, send: Send) -> None:
        self._parts, self._row_id = parts, row_id
        self._request, self._send = request, send
        self._status = 0
        self._body = b""
        self._complete = self._settled = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
        elif message["type"] == "http.response.body":
            if len(self._body) <= MAX_ANSWER:
                self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._complete = True
                await self.settle()
        await self._send(message)

    async def settle(self) -> None:
        """Remember the answer or give the key back, once."""
        if self._settled:
            return
        self._settled = True
        if self._complete and self._status < 300:
            await self._request.drain()  # what the route left of the body also counts
        try:
            await run_in_threadpool(self._write)
        except SQLAlchemyError as error:
            logger.error("The answer to an idempotent request was not remembered: %s", error)

    def _write(self) -> None:
        if not self._complete or self._status >= 300:
            idempotency.give_back(self._parts.sessions, self._row_id)
            return
        secret = any(each in self._body for each in SECRETS)
        keep = len(self._body) <= MAX_ANSWER and not secret
        idempotency.finish(
            self._parts.sessions,
            self._row_id,
            fingerprint=self._request.fingerprint(),
            status=self._status,
            body=self._body if keep else None,
        )


def _key(scope: Scope) -> str | None:
    """Return the request's idempotency key, or None where it has none or none is honoured."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path = path_of(scope)
    if not path.startswith("/v1/") or UNAFFECTED.fullmatch(path):
        return None
    return Headers(scope=scope).get("idempotency-key")


def _claim(parts: Parts, principal: Principal, key: str) -> tuple[str, IdempotentRequest | None]:
    """Take the key, or return the request that had it and is answered."""
    if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise InvalidRequest(
            f"The header Idempotency-Key must have 1 to {MAX_KEY} printable ASCII characters;"
            " a UUID is a good one.",
            code="invalid_idempotency_key",
        )
    row_id, before = idempotency.claim(parts.sessions, principal.project_id, key)
    if before is not None and before.status is None:
        raise KeyInUse(
            "Another request with this Idempotency-Key is being made; wait for its answer, or send"
            " the same request again in a second."
        )
    return row_id, before


def _again(before: IdempotentRequest, fingerprint: str) -> Response:
    """Answer a request whose key was used before."""
    if before.fingerprint != fingerprint:
        message = (
            "This Idempotency-Key was used for a request with another path or body; use a new key"
            " for each new request."
        )
        return envelope(400, message, code="idempotency_key_reused")
    if before.body is None:
        message = (
            "This request was already carried out; its answer shows a secret, so it is not kept:"
            " list what it made, delete it there, and make another with a new Idempotency-Key."
        )
        return envelope(409, message, code="idempotent_answer_not_kept")
    return Response(
        before.body,
        status_code=before.status or 200,
        media_type="application/json",
        headers={"idempotent-replayed": "true"},
    )

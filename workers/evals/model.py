"""The model that a run samples from, through the serving service."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx

from core.errors import ConfigurationError
from core.models import EvalRun, Job
from core.permissions import usable_by
from workers.context import Context
from workers.evals.ending import RunFailed
from workers.serving.requests import CHAT, TEXT
from workers.serving.target import HEADER, Target

#: Seconds to reach the service, and without a byte from it: loading a model is silent.
CONNECT_S, READ_S = 5.0, 600.0
#: Answers that say the service or its engine is not there right now.
_AWAY = frozenset({429, 502, 503, 504})
#: Answers that every other request would get too: a wrong token, weights that are gone.
_FOR_ALL = frozenset({401, 403, 404})
#: How often one request may end in another error of the server before its item is given up.
SERVER_ERRORS = 3


class Refusal(Exception):
    """The model gave no answer to one item: what the server said about it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class ServingAway(RunFailed):
    """The service could not be used for `waited_s` seconds; `reason` says what it did instead."""

    def __init__(self, waited_s: float, reason: str) -> None:
        super().__init__(
            "serving_unavailable",
            f"The model server could not be used for {waited_s:g} seconds: {reason}."
            " Have the operator run `rft-server doctor`, then start a new run.",
        )
        self.waited_s, self.reason = waited_s, reason


def find_target(context: Context, run: EvalRun) -> Target:
    """Return what the run's model name stands for; raises `RunFailed` when it is gone."""
    base = context.registry.get(run.model)
    if base is not None:
        return Target(base=base.id)
    with context.sessions() as session:
        checkpoint = usable_by(session, run.project_id, run.model)
        if checkpoint is None:
            raise RunFailed(
                "model_not_found",
                f"The model {run.model} does not exist any more or may not be used; start a run"
                " with one that GET /v1/models lists.",
            )
        job = session.get_one(Job, checkpoint.job_id)
        return Target.model_validate(
            {"base": job.model, "artifact": checkpoint.object_prefix, "kind": checkpoint.kind}
        )


class Model:
    """One model behind the serving service. Close it with `aclose`."""

    def __init__(
        self,
        context: Context,
        target: Target,
        name: str,
        *,
        waits_s: Sequence[float],
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        settings = context.settings
        if settings.serving_token is None:
            raise ConfigurationError("Set RFT_SERVING_TOKEN to the secret of the serving service.")
        self._name, self._waits_s = name, tuple(waits_s)
        self._client = httpx.AsyncClient(
            base_url=settings.serving_url,
            headers={
                "x-rft-token": settings.serving_token.get_secret_value(),
                HEADER: target.model_dump_json(),
            },
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=settings.eval_concurrency),
            transport=transport,
        )

    async def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a chat request.

        A service that is away is asked again for some minutes. Raises `Refusal` when this request
        has no answer, and `RunFailed` when no other would have one either.
        """
        return await self._complete(CHAT, body)

    async def complete_text(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request to go on from a prompt; waits and raises alike."""
        return await self._complete(TEXT, body)

    async def engine(self) -> str | None:
        """Return name and version of what computes the answers; None when nobody says."""
        try:
            health = (await self._client.get("/health", timeout=CONNECT_S)).json()
        except (httpx.TransportError, ValueError):
            return None
        named = health.get("engine") if isinstance(health, dict) else None
        return named if isinstance(named, str) else None

    async def _complete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        failures = 0
        waits = iter((*self._waits_s, None))
        while True:
            try:
                response = await self._client.post(path, json={**body, "model": self._name})
            except httpx.TransportError as error:
                await self._wait(next(waits), f"it does not answer ({type(error).__name__})")
                continue
            if response.status_code == httpx.codes.OK:
                return _answer(response)
            code, message = _said(response)
            if response.status_code in _AWAY:
                await self._wait(next(waits), f"HTTP {response.status_code}: {message}")
            elif response.status_code in _FOR_ALL:
                raise RunFailed(code, message)
            elif response.status_code < 500 or (failures := failures + 1) >= SERVER_ERRORS:
                raise Refusal(code, message)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _wait(self, wait_s: float | None, reason: str) -> None:
        if wait_s is None:
            raise ServingAway(sum(self._waits_s), reason)
        await asyncio.sleep(wait_s)


def _answer(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError as error:
        raise Refusal("server_error", "The model server's answer is no JSON.") from error
    if not isinstance(answer, dict) or not answer.get("choices"):
        raise Refusal("server_error", "The model server's answer has no choices.")
    return answer


def _said(response: httpx.Response) -> tuple[str, str]:
    """Return the code and the sentence of an error, in whatever form it came."""
    try:
        error = response.json().get("error")
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError):
        error = None
    if not isinstance(error, dict):
        error = {}
    kind = "server_error" if response.status_code >= 500 else "invalid_request"
    code = error.get("code") if isinstance(error.get("code"), str) else None
    return code or kind, str(error.get("message") or "The model server gave no reason.")

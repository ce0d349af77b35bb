"""What happens to every request with a good key before its route: headers, limits, last use."""

import threading
from collections.abc import Mapping

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from api.limits import RequestLimiter
from core.clock import now
from core.errors import InvalidKey
from core.keys import Principal


class LastUse:
    """When this process last saw each key, until somebody writes that down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}

    def note(self, key_id: str) -> None:
        """Remember that the key was used now."""
        with self._lock:
            self._seen[key_id] = now()

    def take(self) -> Mapping[str, int]:
        """Return what was noted since the last call: unix seconds by key id."""
        with self._lock:
            seen, self._seen = self._seen, {}
        return seen


async def admit(
    request: Request,
    principal: Principal,
    *,
    organization_id: str,
    limiter: RequestLimiter,
    last_use: LastUse,
) -> None:
    """Let a request of `principal` in, or raise `InvalidKey` or `RateLimited`.

    Leaves on the request's state what the middleware reads: the principal and the rate headers.
    """
    state = request.state
    state.principal = principal
    state.project_id = principal.project_id
    state.rate_headers = {}
    check_named(request, principal, organization_id)
    last_use.note(principal.key_id)
    if limiter.limits(principal):
        # Redis is asked in a thread; without a limit nobody waits for one.
        await run_in_threadpool(limiter.count, principal, state.rate_headers)


def check_named(request: Request, principal: Principal, organization_id: str) -> None:
    """Refuse a request that names another organisation or project than its key's.

    A project may also be named by its name; an empty header names nothing.
    """
    organization = request.headers.get("openai-organization")
    if organization and organization != organization_id:
        raise InvalidKey(
            "The OpenAI-Organization header should match the organization of the API key:"
            f" send {organization_id}, or leave it out (unset OPENAI_ORG_ID).",
            code="mismatched_organization",
        )
    project = request.headers.get("openai-project")
    if project and project not in (principal.project_id, principal.project_name):
        raise InvalidKey(
            "The OpenAI-Project header should match the project of the API key:"
            f" send {principal.project_id}, or leave it out (unset OPENAI_PROJECT_ID).",
            code="mismatched_project",
        )

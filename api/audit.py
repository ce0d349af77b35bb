"""Names every request for a change, so that `core.audit` can record what it changes."""

from starlette.types import ASGIApp, Receive, Scope, Send

from core.audit import Change, asking

#: Methods that change nothing.
READS = frozenset({"GET", "HEAD", "OPTIONS"})

#: What the last word of a path says was done; another word stands for itself.
_DONE = {
    "archive": "archived",
    "cancel": "cancelled",
    "clone": "cloned",
    "complete": "completed",
    "pause": "paused",
    "replay": "replayed",
    "resume": "resumed",
    "rotate": "rotated",
    "rotate_secret": "secret_rotated",
    "test": "tested",
}
#: Names that OpenAI's audit log has, for what their paths would be called.
_OPENAI = {
    "project.api_key": "api_key",
    "fine_tuning.checkpoint.permission": "checkpoint.permission",
}
_BY_METHOD = {"POST": "created", "PUT": "updated", "PATCH": "updated", "DELETE": "deleted"}
#: Routes whose names their paths do not tell.
_SPECIAL = {
    ("POST", "/v1/evals/{eval_id}/runs/{run_id}"): "eval.run.cancelled",
    ("POST", "/v1/organization/projects/{project_id}/limits"): "rate_limit.updated",
    ("POST", "/v1/organization/retention"): "retention.updated",
}


class AuditTrail:
    """Tells `core.audit` who asks for which change while a request is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READS:
            await self.app(scope, receive, send)
            return
        over = False
        # A task that a request started lives on with its context: what it does then is not asked.
        with asking(lambda: None if over else _change(scope)):
            try:
                await self.app(scope, receive, send)
            finally:
                over = True


def action_of(method: str, path: str) -> str:
    """Return what a request is called in the log, from its method and its route's path.

    `POST /v1/files` is `file.created`, `POST /v1/fine_tuning/jobs/{id}/pause` is
    `fine_tuning.job.paused`.
    """
    if (method, path) in _SPECIAL:
        return _SPECIAL[method, path]
    parts = [part for part in path.split("/") if part and part not in ("v1", "organization")]
    words = [part for part in parts if not part.startswith("{")]
    verb = _BY_METHOD[method]
    if method == "POST" and parts[-1].startswith("{"):
        verb = "updated"
    elif method == "POST" and len(parts) > 1 and not words[-1].endswith("s"):
        last = words.pop()
        verb = _DONE.get(last, last)
    thing = ".".join(_singular(word) for word in words)
    return f"{_OPENAI.get(thing, thing)}.{verb}"


def _change(scope: Scope) -> Change | None:
    principal = scope["state"].get("principal")
    if principal is None:
        return None
    parameters = list(scope.get("path_params", {}).values())
    return Change(
        action=action_of(scope["method"], scope["route"].path),
        project_id=principal.project_id,
        key_id=principal.key_id,
        request_id=scope["state"]["request_id"],
        path_id=str(parameters[-1]) if parameters else None,
    )


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.removesuffix("s")

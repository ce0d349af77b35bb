"""Asking one judge: a chat request, what came back, and what it cost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graders.errors import GradeError, SpecError, SpecProblem
from graders.http import Answer, Gate, Outbound, OutboundError, Retry, Target, TryAgain
from graders.judges.config import Ability, JudgeConfig, Modality, find
from graders.masking import MASK
from graders.trace import Usage

ChatMessage: TypeAlias = dict[str, Any]

#: How long one grade may take, in seconds. The client bounds requests and tries far below that;
#: this leaves room for waiting at the gate of a judge that may be asked a few times a minute only.
TIME_LIMIT_S = 3600.0
#: Largest answer of a judge, in bytes; a thousand tokens take some 5,000.
MAX_BYTES = 4_000_000
#: Answers that may mean that the server does not know `response_format`.
_UNKNOWN_FIELD = (400, 422)


@dataclass(frozen=True)
class Completion:
    """A judge's answer; `cut` means that it ran into its token limit."""

    text: str
    refusal: str | None
    cut: bool
    usage: Usage | None
    attempts: int


class Judge:
    """One model of one server. Several graders may share it, and its gate."""

    def __init__(self, config: JudgeConfig, model: str, http: Outbound, gate: Gate) -> None:
        self.model, self.config = model, config
        self._http, self._gate = http, gate
        self._structured = config.structured_output
        self._retry = Retry(
            attempts=config.attempts, budget_s=config.budget_s, base_s=config.backoff_s
        )

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        sampling: Mapping[str, Any],
    ) -> Completion:
        """Ask for an answer in the form of `schema`, which servers that know no schemas ignore.

        Raises `GradeError` (`model_grader_server_error`) when there is no answer.
        """
        body = {"messages": messages, **sampling}
        structured = {"name": "verdict", "strict": True, "schema": schema}
        if not self._structured:
            return self._completed(await self.send("/chat/completions", body))
        form = {"response_format": {"type": "json_schema", "json_schema": structured}}
        answer = await self.send("/chat/completions", {**body, **form})
        if answer.status not in _UNKNOWN_FIELD:
            return self._completed(answer)
        plain = await self.send("/chat/completions", body, before=answer.attempts)
        completion = self._completed(plain)
        # It answers when it is asked without: from now on it always is.
        self._structured = False
        return completion

    async def send(self, path: str, body: Mapping[str, Any], *, before: int = 0) -> Answer:
        """Post JSON to a path of the judge; answers with a 4xx status come back too.

        `before` counts the requests that came to nothing. Raises `GradeError`.
        """
        config = self.config
        key = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        target = Target(
            config.url(path),
            {**key, **config.headers},
            timeout_s=config.timeout_s,
            max_bytes=MAX_BYTES,
            trusted=True,
        )
        content = json.dumps({"model": config.upstream or self.model, **body}, ensure_ascii=False)
        try:
            answer = await self._http.post(
                target,
                content.encode("utf-8", "replace"),
                retry=self._retry,
                gates=[self._gate],
                check=_refuse_errors,
            )
        except OutboundError as error:
            raise JudgeError(
                f"Judge {self.model}: {error.message}", attempts=before + error.attempts
            ) from error
        return Answer(answer.status, answer.headers, answer.body, before + answer.attempts)

    def require_success(self, answer: Answer) -> None:
        """Raise `GradeError` with what the server said, unless the status is 200."""
        if answer.status == 200:
            return
        if 300 <= answer.status < 400:
            said = "redirects are not followed"
        else:
            said = self._shown(_error_message(answer.body))
        raise JudgeError(
            f"Judge {self.model} refused the request with status {answer.status}: {said}",
            attempts=answer.attempts,
        )

    def _completed(self, answer: Answer) -> Completion:
        self.require_success(answer)
        return _completion(answer)

    def _shown(self, text: str) -> str:
        """What the server said, on one short line and without our secrets."""
        for secret in (self.config.api_key, *self.config.headers.values()):
            if secret:
                text = text.replace(secret, MASK)
        text = " ".join(text.split())
        return text if len(text) <= 300 else f"{text[:300]}…"


class JudgeError(GradeError):
    """The judge gave no answer; `attempts` counts the requests that were sent."""

    def __init__(self, detail: str, *, attempts: int) -> None:
        super().__init__("model_grader_server_error", detail)
        self.attempts = attempts


class Judges:
    """The judges that the operator configured."""

    def __init__(self, configs: Sequence[JudgeConfig], http: Outbound) -> None:
        self._configs, self._http = tuple(configs), http
        self._made: dict[str, Judge] = {}
        self._gates: dict[int, Gate] = {}

    def get(
        self, model: str, *, does: Ability = "chat", reads: frozenset[Modality] = frozenset()
    ) -> Judge:
        """The judge of this name; raises `SpecError` when there is none that can do it."""
        found = find(self._configs, model, does)
        problem = refusal(self._configs, model, does=does, reads=reads)
        if found is None or problem is not None:
            raise SpecError([SpecProblem("model", problem or "")])
        key = f"{does}:{model}"
        if key not in self._made:
            self._made[key] = Judge(found, model, self._http, self._gate(found))
        return self._made[key]

    def _gate(self, config: JudgeConfig) -> Gate:
        entry = self._configs.index(config)
        if entry not in self._gates:
            per_minute = config.requests_per_minute
            self._gates[entry] = Gate(
                concurrency=config.max_concurrency,
                per_second=per_minute / 60 if per_minute else None,
            )
        return self._gates[entry]


def refusal(
    configs: tuple[JudgeConfig, ...],
    model: str,
    *,
    does: Ability,
    reads: frozenset[Modality],
) -> str | None:
    """The sentence for a model that is no judge here, or cannot do what is asked of it."""
    found = find(configs, model, does)
    if found is None:
        names = ", ".join(sorted({judge.model for judge in configs if does in judge.does}))
        what = "judge" if does == "chat" else "embeddings model"
        return f"Unknown {what} {model!r}; known: {names or 'none'}. The operator can add it."
    missing = sorted(reads - set(found.reads))
    if missing:
        return (
            f"Judge {model} reads {' and '.join(found.reads)} only, and this grader sends "
            f"{' and '.join(missing)}; if it can read that, the operator can add it to 'reads'."
        )
    return None


def _refuse_errors(answer: Answer) -> None:
    """Raise `TryAgain` for a failure of infrastructure that calls itself a success."""
    if answer.status != 200:
        return
    body = _parsed(answer.body)
    if not isinstance(body, dict):
        raise TryAgain("status 200 and a body that is no JSON object")
    if body.get("error") and not body.get("choices") and not body.get("data"):
        raise TryAgain("status 200 and a body that holds an error")


def _completion(answer: Answer) -> Completion:
    body = _parsed(answer.body)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    message = choice.get("message") if isinstance(choice, dict) else None
    message = message if isinstance(message, dict) else {}
    finish = choice.get("finish_reason") if isinstance(choice, dict) else None
    refused = message.get("refusal")
    if finish == "content_filter":
        refused = refused or "its content filter stepped in"
    return Completion(
        text=_text(message.get("content")),
        refusal=str(refused) if refused else None,
        cut=finish == "length",
        usage=_usage(body.get("usage")),
        attempts=answer.attempts,
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    details = raw.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(
        _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens")), _count(cached)
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _error_message(body: bytes) -> str:
    parsed = _parsed(body)
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:1_000].decode("utf-8", "replace")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

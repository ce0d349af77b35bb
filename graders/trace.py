"""What one grader did for one sample, besides its outcome: for the viewer and for the bill."""

from dataclasses import dataclass, fields
from typing import Any

#: Longest text that a trace keeps, in characters; `output` ends with a mark where it was cut.
MAX_OUTPUT_CHARS = 16_384


@dataclass(frozen=True)
class Usage:
    """Tokens that a judge read and wrote; `cached_tokens` are part of `prompt_tokens`."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens, in and out."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(slots=True)
class Trace:
    """One grader's run on one sample.

    `grader` is the name that outcomes are reported under (the key of a child in a `multi`).
    `latency_s` counts the seconds of work, not those of waiting for a turn or for a group.
    `output` is what the viewer shows: the raw reply of a judge, what python code printed.
    `attempts` counts requests, the retried ones included; `cached` means that none was needed.
    `score`, `failure` (a kind) and `detail` say how it ended; both stand where `invalid_grade`
    or a range policy turned a failure into a score, and neither where the grader abstained.
    `agreement`, from -1 to 1, says how alike the votes of a judge were that was asked repeatedly.
    """

    grader: str
    type: str
    latency_s: float = 0.0
    model: str | None = None
    usage: Usage | None = None
    output: str | None = None
    attempts: int = 1
    cached: bool = False
    score: float | None = None
    failure: str | None = None
    detail: str | None = None
    agreement: float | None = None

    def keep(self, text: str) -> None:
        """Set `output`, cut to what a trace may hold."""
        cut = len(text) - MAX_OUTPUT_CHARS
        self.output = text if cut <= 0 else f"{text[:MAX_OUTPUT_CHARS]}… ({cut} more characters)"

    def wire(self) -> dict[str, Any]:
        """The trace as a plain JSON object."""
        data = {name: getattr(self, name) for name in _FIELDS}
        if self.usage is not None:
            data["usage"] = dict(vars(self.usage))
        return data

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> "Trace":
        """Read back what `wire` wrote."""
        usage = data["usage"]
        return cls(**{**data, "usage": Usage(**usage) if usage else None})


_FIELDS = tuple(field.name for field in fields(Trace))

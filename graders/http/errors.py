"""What can go wrong with a request.

OutboundError
├── Refused       the address or the URL is not allowed; nothing was sent
├── TooLarge      the answer holds more bytes than allowed
└── Unavailable   no usable answer, after every try

The messages name the host and never a path, a header or an address that a name resolved to.
"""

from graders.errors import GraderError


class OutboundError(GraderError):
    """A request has no answer that can be used.

    `attempts` counts how often it was sent, `status` is that of the last answer, if one began.
    """

    def __init__(self, message: str, *, attempts: int = 0, status: int | None = None) -> None:
        self.message = message
        self.attempts = attempts
        self.status = status
        super().__init__(message)


class Refused(OutboundError):
    """The policy forbids the request."""


class TooLarge(OutboundError):
    """The answer is larger than the caller takes."""


class Unavailable(OutboundError):
    """Infrastructure failed on every try; `timed_out` says that the last one took too long.

    `retry_after_s` is how long the last answer asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        attempts: int,
        timed_out: bool = False,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, attempts=attempts, status=status)
        self.timed_out = timed_out
        self.retry_after_s = retry_after_s

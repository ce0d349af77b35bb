"""A job that validation refuses."""

from typing import Any

from core.errors import InvalidRequest


class Refused(InvalidRequest):
    """The job cannot be trained as it stands; ``data`` lists what is wrong."""

    def __init__(
        self, message: str, *, code: str, param: str, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.data = data

"""Every error the service raises on purpose.

    RftError
    ├── InvalidRequest          400  the caller must change the request
    │   ├── UnsupportedMethod   400  a method that has not what is asked of it
    │   └── IllegalTransition   400  the job is in the wrong state
    ├── InvalidKey              401  the API key is unknown, revoked or expired
    ├── NotFound                404  no such thing in the caller's project
    │   └── JobNotFound         404
    ├── StaleFence              409  another holder has taken over the job
    ├── TooManyRequests         429  a limit of the project or the key
    │   ├── RateLimited         429  waiting helps, and the error says how long
    │   └── QuotaExceeded       429  waiting alone does not help
    ├── ConfigurationError      500  the operator must change a setting or a file
    └── StorageError            503  the object store
        ├── StoreUnreachable    503  no answer from the endpoint
        ├── StoreRefused        503  the endpoint answered with a refusal
        ├── ObjectMissing       404  no object under this key
        ├── ManifestMissing     503  the prefix was never committed
        └── ManifestMismatch    503  the objects are not what the manifest says

To add one: subclass the nearest category (and the stdlib type it replaces), set `code` and
`status`, and write one sentence that names the thing and the way out. Errors pickle.
"""

import errno
import math
from collections.abc import Mapping
from typing import Any

#: Numbers of an OSError that mean: no room left, on the disk or in the user's quota.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class RftError(Exception):
    """Root of the tree: one sentence, plus what an HTTP answer needs."""

    code: str | None = None
    status: int = 500
    param: str | None = None

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if param is not None:
            self.param = param

    @property
    def type(self) -> str:
        """OpenAI's `error.type` for this status."""
        return "invalid_request_error" if self.status < 500 else "server_error"

    @property
    def headers(self) -> Mapping[str, str]:
        """Further headers of the answer; OpenAI's clients decide by them whether to try again."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take other arguments than `message`; rebuild without calling __init__.
        return _rebuild, (type(self), self.message, self.__dict__)


def _rebuild(kind: type[RftError], message: str, state: dict[str, Any]) -> RftError:
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class InvalidRequest(RftError, ValueError):
    """The request cannot be carried out as it stands."""

    status = 400


class UnsupportedMethod(InvalidRequest):
    """The method has not what is asked of it, as a grader."""

    code = "unsupported_method"


class IllegalTransition(InvalidRequest):
    """The job's status does not allow the wanted change."""

    code = "invalid_job_state"

    def __init__(self, job_id: str, status: str, to: str) -> None:
        super().__init__(
            f"{job_id} is {status} and cannot become {to}; read its status and try again."
        )
        self.job_id, self.from_status, self.to = job_id, status, to


class InvalidKey(RftError):
    """The API key is unknown, revoked or expired."""

    code = "invalid_api_key"
    status = 401


class NotFound(RftError, LookupError):
    """The thing does not exist, or belongs to another project."""

    code = "not_found"
    status = 404


class JobNotFound(NotFound):
    """No such fine-tuning job."""

    code = "fine_tune_not_found"
    param = "fine_tune_id"

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"Could not find fine tune: {job_id}. GET /v1/fine_tuning/jobs lists them."
        )
        self.job_id = job_id


class StaleFence(RftError):
    """A write came from a holder that no longer holds the job; it must stop at once."""

    code = "stale_fence"
    status = 409

    def __init__(self, job_id: str, fence: int) -> None:
        super().__init__(
            f"Job {job_id} is no longer held under fence {fence}; this worker must stop."
        )
        self.job_id, self.fence = job_id, fence


class TooManyRequests(RftError):
    """A limit is reached; `kind` says of what, in OpenAI's `error.type`."""

    code = "rate_limit_exceeded"
    status = 429
    kind = "requests"

    @property
    def type(self) -> str:
        """What there was too much of, as OpenAI's `error.type` does."""
        return self.kind


class RateLimited(TooManyRequests):
    """Too many requests in a minute; after `retry_after_s` seconds the next one is let through."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> Mapping[str, str]:
        """Tell clients when to try again: in whole seconds, as HTTP has it, and exactly."""
        return {
            "retry-after": str(math.ceil(self.retry_after_s)),
            "retry-after-ms": str(math.ceil(self.retry_after_s * 1000)),
            "x-should-retry": "true",
        }


class QuotaExceeded(TooManyRequests):
    """The project has used up what it may use; trying again changes nothing."""

    code = "insufficient_quota"
    kind = "insufficient_quota"

    def __init__(self, message: str, *, kind: str | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        if kind is not None:
            self.kind = kind

    @property
    def headers(self) -> Mapping[str, str]:
        """Keep clients from trying again."""
        return {"x-should-retry": "false"}


class ConfigurationError(RftError):
    """A setting or a configuration file is wrong; the sentence names it."""

    code = "configuration_error"


class StorageError(RftError):
    """The object store did not do what was asked."""

    code = "storage_error"
    status = 503


class StoreUnreachable(StorageError):
    """The object store did not answer."""

    code = "store_unreachable"

    def __init__(self, endpoint: str, detail: str) -> None:
        super().__init__(
            f"The object store at {endpoint} does not answer ({detail});"
            " start it or correct RFT_S3_ENDPOINT_URL. Nothing already stored is affected."
        )
        self.endpoint = endpoint


class StoreRefused(StorageError):
    """The object store answered with a refusal."""

    code = "store_refused"

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(
            f"The object store at {endpoint} refused the call ({reason});"
            " check RFT_S3_BUCKET, the access key and the free space."
        )
        self.endpoint = endpoint


class ObjectMissing(StorageError, LookupError):
    """No object is stored under the key."""

    code = "object_missing"
    status = 404

    def __init__(self, key: str) -> None:
        super().__init__(f"The object store holds no object {key!r}; upload it again.")
        self.key = key


class ManifestMissing(StorageError, LookupError):
    """The prefix has no manifest: nothing under it was ever committed."""

    code = "manifest_missing"

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"{prefix!r} has no manifest, so its upload never finished; use an earlier one."
        )
        self.prefix = prefix


class ManifestMismatch(StorageError, ValueError):
    """An object differs from what its manifest says."""

    code = "manifest_mismatch"

    def __init__(self, prefix: str, detail: str) -> None:
        super().__init__(f"{prefix!r} does not match its manifest ({detail}); use an earlier one.")
        self.prefix = prefix

"""What the operator decides about the sandbox."""

import os
import sys
import tempfile
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


def _python() -> str:
    return os.environ.get("RFT_SANDBOX_PYTHON") or sys.executable


class SandboxConfig(BaseModel):
    """How python graders run; the defaults are OpenAI's limits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tier: Literal["process"] = "process"
    #: The interpreter that graders run on; RFT_SANDBOX_PYTHON, or this one.
    python: str = Field(default_factory=_python)
    #: Longest run of one call, in seconds of the clock on the wall.
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    #: Memory of one call beyond that of the preloaded packages, and what it may write.
    memory_mb: Annotated[int, Field(ge=64)] = 2048
    disk_mb: Annotated[int, Field(ge=1)] = 1024
    #: Calls that run at the same time; None: one per core.
    concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    #: Modules to import once, besides what graders import of the standard library and of
    #: `preload.PACKAGES`.
    preload: tuple[str, ...] = ()
    #: Where the private folders of calls lie.
    tmp_dir: str = Field(default_factory=tempfile.gettempdir)
    #: The user that code runs as when the service runs as root.
    uid: Annotated[int, Field(gt=0)] = 65534

    @property
    def places(self) -> int:
        """How many calls run at the same time."""
        return self.concurrency or len(os.sched_getaffinity(0))

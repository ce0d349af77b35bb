"""The sandbox: where the code of python graders runs, cut off from everything."""

from graders.sandbox.base import Program, Ran, Sandbox, SandboxError
from graders.sandbox.config import SandboxConfig
from graders.sandbox.inspection import (
    Inspected,
    SourceError,
    Support,
    inspect_source,
    support,
)
from graders.sandbox.process import ProcessSandbox

__all__ = [
    "Inspected",
    "ProcessSandbox",
    "Program",
    "Ran",
    "Sandbox",
    "SandboxConfig",
    "SandboxError",
    "SourceError",
    "Support",
    "inspect_source",
    "open_sandbox",
    "support",
]

#: Every tier by its name in the configuration.
TIERS = {"process": ProcessSandbox}


def open_sandbox(config: SandboxConfig) -> Sandbox:
    """The sandbox of the configured tier; nothing is started before the first call."""
    return TIERS[config.tier](config)

"""The embedded stack: every server of the service as a child process, data in one folder."""

from core.stack.stack import Stack, StackFailed

__all__ = ["Stack", "StackFailed"]

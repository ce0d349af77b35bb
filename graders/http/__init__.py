"""The one way out: every request to a host that the operator or a user names goes through here.

It refuses addresses inside the network unless the operator allows the host, follows no redirect,
bounds time and size, and repeats what failed for reasons of infrastructure only.
"""

from graders.http.client import Answer, Outbound, Target, TryAgain
from graders.http.config import HttpConfig
from graders.http.errors import OutboundError, Refused, TooLarge, Unavailable
from graders.http.gate import Gate
from graders.http.policy import Policy
from graders.http.retry import Retry

__all__ = [
    "Answer",
    "Gate",
    "HttpConfig",
    "Outbound",
    "OutboundError",
    "Policy",
    "Refused",
    "Retry",
    "Target",
    "TooLarge",
    "TryAgain",
    "Unavailable",
]

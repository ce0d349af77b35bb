"""What the operator allows requests to reach."""

from pydantic import BaseModel, ConfigDict


class HttpConfig(BaseModel):
    """`allow_hosts` lists hosts, as `name` or `name:port`, that may lie inside the network.

    For these, plain http is allowed too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow_hosts: tuple[str, ...] = ()

"""What the graders of one engine share with the outside world."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class ServicesConfig(BaseModel):
    """What the operator allows graders to use; JSON in RFT_GRADER_SERVICES for the process."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Services:
    """Made once per engine; everything in it is made when a grader first asks for it."""

    def __init__(self, config: ServicesConfig | None = None) -> None:
        self.config = config or ServicesConfig()

    async def close(self) -> None:
        """Release what was made."""


def read_config(env: Mapping[str, str]) -> ServicesConfig:
    """The operator's configuration from RFT_GRADER_SERVICES, or the defaults."""
    text = env.get("RFT_GRADER_SERVICES")
    return ServicesConfig.model_validate_json(text) if text else ServicesConfig()

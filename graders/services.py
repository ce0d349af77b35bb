"""What the graders of one engine share with the outside world."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

from graders.http import HttpConfig, Outbound, Policy
from graders.judges.config import JudgeConfig
from graders.judges.embeddings import Embeddings
from graders.judges.judge import Judges
from graders.sandbox import Sandbox, SandboxConfig, open_sandbox
from graders.symbolic import Symbolic


class ServicesConfig(BaseModel):
    """What the operator allows graders to use; JSON in RFT_GRADER_SERVICES for the process."""

    # What is wrong is said without the keys that the judges have.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    http: HttpConfig = HttpConfig()
    judges: tuple[JudgeConfig, ...] = ()
    sandbox: SandboxConfig = Field(default_factory=SandboxConfig)


class Services:
    """Made once per engine; everything in it is made when a grader first asks for it."""

    def __init__(self, config: ServicesConfig | None = None) -> None:
        self.config = config or ServicesConfig()

    @cached_property
    def thread(self) -> ThreadPoolExecutor:
        """Where slow graders that only compute go on; one, as they share the interpreter anyway."""
        return ThreadPoolExecutor(1, "slow-grader")

    @cached_property
    def http(self) -> Outbound:
        """The client for everything outside."""
        return Outbound(Policy(self.config.http.allow_hosts))

    @cached_property
    def judges(self) -> Judges:
        """The judges that the operator configured."""
        return Judges(self.config.judges, self.http)

    @cached_property
    def embeddings(self) -> Embeddings:
        """Vectors of texts, from models of the same list."""
        return Embeddings(self.judges)

    @cached_property
    def symbolic(self) -> Symbolic:
        """The processes that compare formulas."""
        return Symbolic()

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where the code of python graders runs."""
        return open_sandbox(self.config.sandbox)

    async def close(self) -> None:
        """Release what was made."""
        if "sandbox" in vars(self):
            await self.sandbox.close()
        if "symbolic" in vars(self):
            await self.symbolic.close()
        if "embeddings" in vars(self):
            await self.embeddings.close()
        if "http" in vars(self):
            await self.http.close()
        if "thread" in vars(self):
            self.thread.shutdown(wait=False)


def read_config(env: Mapping[str, str]) -> ServicesConfig:
    """The operator's configuration from RFT_GRADER_SERVICES, or the defaults."""
    text = env.get("RFT_GRADER_SERVICES")
    return ServicesConfig.model_validate_json(text) if text else ServicesConfig()

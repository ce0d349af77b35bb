"""Memory: how much is used, and what to do when it is used up."""

import errno
import gc
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import torch

from trainer.errors import OutOfMemory
from trainer.packing import TOKEN_BUDGET
from trainer.watch.finding import Finding, Say

#: Tokens of a micro-batch under which halving helps no more.
LEAST_TOKENS = 256

_PAGE = resource.getpagesize()

Result = TypeVar("Result")


def memory_used() -> dict[str, int | None]:
    """Bytes held now, and at most so far, by this process and on its accelerator (else null)."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    on_gpu = torch.cuda.is_available()
    return {
        "rss_bytes": resident,
        # Linux counts it in kilobytes.
        "rss_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "device_bytes": torch.cuda.memory_allocated() if on_gpu else None,
        "device_peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of machine or accelerator is used up."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:  # as where no process can start
        return True
    # Torch's CPU allocator, and what libraries ask of a GPU past its own, have no type for this.
    text = str(error).lower()
    return any(said in text for said in ("can't allocate memory", "out of memory", "alloc_failed"))


class Accumulates(Protocol):
    """What gradients are added up in."""

    def discard_gradients(self) -> None:
        """Forget what was accumulated since the last update."""
        ...


@dataclass
class MicroBatchSize:
    """How many tokens a micro-batch may hold; kept in checkpoints."""

    tokens: int = TOKEN_BUDGET

    def within_memory(
        self, policy: Accumulates, accumulate: Callable[[int], Result], say: Say
    ) -> Result:
        """Run ``accumulate(tokens)``, again with half the tokens where memory does not suffice.

        Each try begins without gradients, so nothing is counted twice.

        Args:
            accumulate: forward and backward of one whole update, cut into micro-batches of at most
                so many tokens; it must not depend on what an earlier try left.

        Raises:
            OutOfMemory: not even the smallest micro-batch fits.
        """
        while True:
            try:
                return accumulate(self.tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            # Out here the error is gone, and with it the frames that held the tensors.
            policy.discard_gradients()
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self._halve(say)

    def _halve(self, say: Say) -> None:
        if self.tokens // 2 < LEAST_TOKENS:
            raise OutOfMemory(
                f"Memory does not suffice for micro-batches of {self.tokens} tokens. Use shorter "
                "rows or completions, a lower lora_rank, or a machine with more memory."
            )
        self.tokens //= 2
        say(
            Finding(
                "micro_batch_halved",
                f"Memory was used up; going on with micro-batches of {self.tokens} tokens, which "
                "changes the speed and not the result.",
                {"tokens": self.tokens},
            )
        )

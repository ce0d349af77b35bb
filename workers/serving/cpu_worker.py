"""A worker for vLLM's CPU build under which requests may carry a seed.

vLLM reads a long prompt in parts. After each part but the last it throws the sampled token away and
winds the request's random generator back by an offset, which a CPU generator does not have: the
error ends the whole server. Here the generator gets its former state back instead, so that a seed
gives the same answer however the prompt was divided.

Loaded inside vLLM through its option `--worker-cls`; nothing else of ours imports this module.
"""

from typing import Any

import numpy as np
import torch
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker


class SeededRunner(CPUModelRunner):
    """The model runner of the CPU build, with generators that can be wound back."""

    #: The states of the generators before the last sampling, by their row in the batch.
    _before: dict[int, torch.Tensor]

    def _sample(self, *args: Any, **kwargs: Any) -> Any:
        generators = self.input_batch.generators
        self._before = {row: each.get_state() for row, each in generators.items()}
        return super()._sample(*args, **kwargs)

    def _bookkeeping_sync(self, *args: Any, **kwargs: Any) -> Any:
        generators = self.input_batch.generators
        discarded = np.nonzero(self.discard_request_mask.np[: self.input_batch.num_reqs])[0]
        # Out of sight while vLLM looks for generators to wind back.
        hidden = {row: generators.pop(row) for row in map(int, discarded) if row in generators}
        try:
            return super()._bookkeeping_sync(*args, **kwargs)
        finally:
            for row, generator in hidden.items():
                generator.set_state(self._before[row])
            generators.update(hidden)


class SeededWorker(CPUWorker):
    """The worker of the CPU build, with that runner."""

    def init_device(self) -> None:
        """Set the device up as vLLM does."""
        super().init_device()
        # The second model runner, not used by default, draws its random numbers in another way.
        if type(self.model_runner) is CPUModelRunner:
            self.model_runner.__class__ = SeededRunner

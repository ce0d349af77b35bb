"""vLLM in this process as the sampler."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from trainer.errors import WeightsMismatch
from trainer.policy import Policy
from trainer.rollout.base import Completion, Sampling

#: Most bytes of key-value cache when sampling on a CPU; sequences beyond it wait for their turn.
MAX_CPU_CACHE_BYTES = 4 << 30

#: Prompt tokens that are read at a time; more need more memory and are no faster.
BATCHED_TOKENS = 4096

#: Tokens of a block of the key-value cache.
BLOCK_TOKENS = 32


class VllmEngine:
    """The offline engine, stepped by hand so that completions leave as soon as they end.

    Args:
        model_path: base model (or full weights) in Hugging Face layout.
        max_model_len: longest prompt plus completion, in tokens.
        sequences: how many are sampled at a time, for which a CPU sets memory aside.
        lora_rank: zero when the policy's full weights are loaded instead of an adapter.
        threads: CPU threads; zero uses every core this process may use.
        memory_share: part of the GPU's memory for the sampler's weights and cache.
        sleeps: whether that part is given back between two calls, as a policy on the same GPU wants
            for its update; not for one that samples while it updates. A CPU has no such parts.
        end_ids: tokens that end a completion besides those that the model's own files name.
    """

    def __init__(
        self,
        model_path: Path,
        *,
        max_model_len: int,
        sequences: int,
        lora_rank: int,
        threads: int,
        dtype: str,
        memory_share: float,
        sleeps: bool,
        end_ids: Iterable[int] = (),
    ) -> None:
        _configure_environment(threads)
        from vllm import LLM

        # vLLM's adapter kernels dominate sampling on a CPU: there the adapter is folded into the
        # weights instead.
        adapters = lora_rank > 0 and torch.cuda.is_available()
        slot = _lora_rank_slot(lora_rank)
        self._llm: Any = LLM(
            str(model_path),
            dtype=dtype,
            enforce_eager=not torch.cuda.is_available(),
            max_model_len=max_model_len,
            max_num_seqs=256,
            max_num_batched_tokens=max(BATCHED_TOKENS, max_model_len),
            gpu_memory_utilization=memory_share,
            enable_prefix_caching=True,
            # Whole blocks are shared, and left to itself vLLM makes them longer than most prompts.
            block_size=BLOCK_TOKENS,
            logprobs_mode="processed_logprobs",
            **({"enable_lora": True, "max_lora_rank": slot, "max_loras": 1} if adapters else {}),
            disable_log_stats=True,
            enable_sleep_mode=sleeps and torch.cuda.is_available(),
            **_cpu_cache(model_path, dtype, sequences * max_model_len),
        )
        self._sleeps = sleeps and torch.cuda.is_available()
        # Deleted with this object, or at the end of the process.
        self._adapters = tempfile.TemporaryDirectory(prefix="rft-adapters-") if adapters else None
        self._lora_request: Any = None
        self._version = 0
        self._end_ids = sorted(end_ids)

    def generate(
        self, prompts: list[list[int]], sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        """See :class:`RolloutEngine`."""
        from vllm import SamplingParams

        self._wake()
        # One generator for the whole batch: the order of requests and of their tokens is fixed,
        # so a seed fixes every draw, and per-request generators (slow, and broken on CPU) are not
        # needed.
        torch.manual_seed(sampling.seed)
        # Draws also depend on how requests are batched, and that on what is cached: a run that was
        # resumed must find the cache as empty as one that was not.
        self._llm.reset_prefix_cache()
        params = SamplingParams(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            logprobs=0,
            detokenize=False,
            stop_token_ids=self._end_ids,
        )
        for indices in _waves(prompts):
            for index in indices:
                self._llm.llm_engine.add_request(
                    str(index),
                    {"prompt_token_ids": prompts[index]},
                    params,
                    lora_request=self._lora_request,
                )
            yield from self._step()
        while self._llm.llm_engine.has_unfinished_requests():
            yield from self._step()
        if self._sleeps:
            self._llm.sleep(level=1)

    def _wake(self) -> None:
        if self._sleeps:
            self._llm.wake_up()

    def _step(self) -> Iterator[tuple[int, Completion]]:
        for output in self._llm.llm_engine.step():
            if output.finished:
                yield int(output.request_id), _completion(output.outputs[0])

    def load_weights(self, policy: Policy) -> None:
        """See :class:`RolloutEngine`."""
        self._version += 1
        self._wake()
        if self._adapters is not None:
            self._load_adapter(policy, Path(self._adapters.name) / f"v{self._version}")
        else:
            self._llm.collective_rpc(
                "reload_weights", kwargs={"weights_iterator": policy.sampler_weights()}
            )
            self._llm.collective_rpc(_pack_heads)

    def _load_adapter(self, policy: Policy, path: Path) -> None:
        # vLLM keys adapters by id and its prefix cache by name and path: each version is a new one.
        from vllm.lora.request import LoRARequest

        policy.save_model(path)
        old, self._lora_request = (
            self._lora_request,
            LoRARequest(f"v{self._version}", self._version, str(path)),
        )
        engine = self._llm.llm_engine
        if old is not None:
            engine.remove_lora(old.lora_int_id)
            shutil.rmtree(old.lora_path)
        if not engine.add_lora(self._lora_request) or self._version not in engine.list_loras():
            raise WeightsMismatch(f"vLLM did not load the adapter of version {self._version}.")


def _configure_environment(threads: int) -> None:
    # Read by vLLM at import and start; an operator's own setting wins.
    defaults = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
    }
    cores = sorted(os.sched_getaffinity(0))[: threads or None]
    defaults["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def _pack_heads(worker: Any) -> None:
    """Let heads follow the embedding that they are tied to.

    A CPU computes with a packed copy of a head's weights, and vLLM's reload packs only what it was
    given: a tied head has no name of its own in a checkpoint, and would stay as it was.
    """
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for module in worker.get_model().modules():
        if isinstance(module, ParallelLMHead):
            module.quant_method.process_weights_after_loading(module)


def _cpu_cache(model_path: Path, dtype: str, tokens: int) -> dict[str, int]:
    """How much key-value cache to set aside; on a GPU it is what the memory share leaves."""
    if torch.cuda.is_available() or "VLLM_CPU_KVCACHE_SPACE" in os.environ:
        return {}
    config = AutoConfig.from_pretrained(model_path).get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    # Keys and values.
    per_token = 2 * config.num_hidden_layers * heads * size * getattr(torch, dtype).itemsize
    return {"kv_cache_memory_bytes": min(MAX_CPU_CACHE_BYTES, tokens * per_token)}


def _waves(prompts: list[list[int]]) -> list[list[int]]:
    """Indices of the first request of each prompt, then of all others.

    A step later a prompt's blocks are in the prefix cache, and the rest of its group reads them.
    """
    first: dict[tuple[int, ...], int] = {}
    for index, prompt in enumerate(prompts):
        first.setdefault(tuple(prompt), index)
    leaders = set(first.values())
    waves = [sorted(leaders), [i for i in range(len(prompts)) if i not in leaders]]
    return [wave for wave in waves if wave]


def _lora_rank_slot(rank: int) -> int:
    # The ranks for which vLLM has kernels.
    return next(slot for slot in (16, 32, 64, 128, 256, 320, 512) if slot >= rank)


def _completion(output: Any) -> Completion:
    ids = list(output.token_ids)
    logprobs = [step[token].logprob for step, token in zip(output.logprobs, ids, strict=True)]
    return Completion(ids, logprobs, truncated=output.finish_reason == "length")

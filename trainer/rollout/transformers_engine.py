"""A small sampler on plain transformers, for tests and for machines without vLLM."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trainer.policy import Policy
from trainer.rollout.base import Completion, Sampling


class TransformersEngine:
    """Samples all prompts in one left-padded batch with a key-value cache."""

    def __init__(self, policy: Policy) -> None:
        self._model: Any = copy.deepcopy(policy.model).requires_grad_(False)
        self._device = policy.device
        self._ends = policy.end_ids

    def load_weights(self, policy: Policy) -> None:
        """See :class:`RolloutEngine`."""
        own = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, parameter in policy.trainable.items():
                own[name].copy_(parameter)

    @torch.no_grad()
    def generate(
        self, prompts: list[list[int]], sampling: Sampling
    ) -> Iterator[tuple[int, Completion]]:
        """See :class:`RolloutEngine`."""
        generator = torch.Generator(self._device).manual_seed(sampling.seed)
        ids, mask, positions = (t.to(self._device) for t in _left_pad(prompts))
        cache = None
        tokens: list[list[int]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        live = set(range(len(prompts)))
        while live:
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = output.past_key_values
            chosen, logp = _draw(output.logits[:, -1].float(), sampling.temperature, generator)
            for index in sorted(live):
                token = int(chosen[index])
                tokens[index].append(token)
                logprobs[index].append(float(logp[index]))
                ended = token in self._ends
                if ended or len(tokens[index]) == sampling.max_tokens:
                    live.discard(index)
                    yield index, Completion(tokens[index], logprobs[index], truncated=not ended)
            ids, positions = chosen[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)


def _draw(logits: Tensor, temperature: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    if temperature == 0:
        logp = logits.log_softmax(-1)
        chosen = logits.argmax(-1)
    else:
        logp = (logits / temperature).log_softmax(-1)
        chosen = torch.multinomial(logp.exp(), 1, generator=generator).squeeze(1)
    return chosen, logp.gather(1, chosen[:, None]).squeeze(1)


def _left_pad(prompts: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    width = max(map(len, prompts))
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    return ids, mask, (mask.cumsum(1) - 1).clamp(min=0)

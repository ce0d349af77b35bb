"""The model that learns: a base causal LM with LoRA, or all of its weights.

Compute runs in the model's own type (bfloat16, as the sampler's); the optimiser works on float32
master copies, and gradients are added up in float32, so small updates are not rounded away.
"""

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from torch import Tensor

from trainer import attention
from trainer.checkpoint_form import checkpoint_form
from trainer.errors import Diverged
from trainer.head import logit_scale
from trainer.loading import BaseSpec, load_model
from trainer.logprob import chunked_logprob
from trainer.packing import Group, PackedRow, pack
from trainer.quantization import plain
from trainer.spec import AdapterSpec

#: Gradient norm above which gradients are scaled down.
MAX_GRAD_NORM = 1.0


class Policy:
    """A causal LM, its trainable parameters and their float32 masters.

    Args:
        model: a transformers causal LM; with peft adapters when ``lora_rank`` is not zero.
        tokenizer: its tokenizer, saved beside every exported model.
        lora_rank: zero when all weights are trained.
    """

    def __init__(self, model: Any, tokenizer: Any, *, lora_rank: int) -> None:
        model.set_attn_implementation(attention.register())
        self.model = model
        self.tokenizer = tokenizer
        self.lora_rank = lora_rank
        self.device: torch.device = model.device
        self._logit_scale = logit_scale(model.config)
        self.trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.masters = {n: p.detach().float().clone() for n, p in self.trainable.items()}
        for name, parameter in self.trainable.items():
            self.masters[name].grad = torch.zeros_like(self.masters[name])
            parameter.register_post_accumulate_grad_hook(self._move_grad(name))
        self.optimizer: torch.optim.Optimizer | None = None

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        name: str,
        init: Path | None,
        dtype: torch.dtype,
        adapter: AdapterSpec,
        seed: int,
        chat_template: Path | None = None,
    ) -> "Policy":
        """Load a base model, and what an earlier job made of it: see :func:`load_model`.

        Args:
            path: the base model, and ``name`` what an exported adapter calls it.
            chat_template: a file whose template stands in for the tokenizer's own.
        """
        base = BaseSpec(id=name, path=path, chat_template=chat_template)
        model, tokenizer = load_model(base, init=init, dtype=dtype, adapter=adapter, seed=seed)
        return cls(model, tokenizer, lora_rank=adapter.rank)

    @property
    def kind(self) -> str:
        """What :meth:`save_model` writes: ``adapter`` or ``full``."""
        return "adapter" if self.lora_rank else "full"

    @property
    def end_ids(self) -> set[int]:
        """Every token id that ends a completion."""
        configured = self.model.generation_config.eos_token_id
        ids = set(configured) if isinstance(configured, list) else {configured}
        return (ids | {self.tokenizer.eos_token_id}) - {None}

    # --- forward and update -------------------------------------------------------------------

    def logprobs(self, groups: list[Group], *, temperature: float) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy of every completion token.

        Returns:
            ``logp [N]`` and ``entropy [N]``, in the order group, completion, token.
        """
        row = pack(groups, self.device)
        hidden_NH = self._hidden(row)[row.source_N]
        weight = self.model.get_output_embeddings().weight
        return chunked_logprob(hidden_NH, weight, row.targets_N, temperature)

    def hidden(self, groups: list[Group]) -> Tensor:
        """The last hidden states ``[N, H]`` that predict the tokens of :meth:`logprobs`."""
        row = pack(groups, self.device)
        return self._hidden(row)[row.source_N]

    def start_optimizer(self) -> None:
        """Begin with fresh optimiser state; the learning rate is given at each update."""
        self.optimizer = torch.optim.AdamW(
            list(self.masters.values()), lr=0.0, betas=(0.9, 0.999), weight_decay=0.0, fused=True
        )

    def update(self, learning_rate: float) -> float:
        """Apply the accumulated gradients once and clear them.

        Returns:
            The gradient norm before clipping.

        Raises:
            Diverged: the norm is not finite; the weights are untouched.
        """
        if self.optimizer is None:
            raise RuntimeError("start_optimizer() comes before update()")
        norm = float(torch.nn.utils.clip_grad_norm_(self.masters.values(), MAX_GRAD_NORM))
        if not math.isfinite(norm):
            raise Diverged(
                "The gradient is not finite, so the update was not applied. Lower learning_rate "
                "or start again from the last checkpoint."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.refresh()
        return norm

    def discard_gradients(self) -> None:
        """Forget what was accumulated since the last update."""
        for name, master in self.masters.items():
            master.grad = torch.zeros_like(master)
            # A backward pass that was broken off may have left one that was not moved.
            self.trainable[name].grad = None

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the masters into the model's own type."""
        for name, parameter in self.trainable.items():
            parameter.copy_(self.masters[name])

    def reference(self) -> "Policy":
        """A frozen copy of the policy as it is now; untrained weights are shared, not copied."""
        frozen = {id(p): p for p in self.model.parameters() if not p.requires_grad}
        model = copy.deepcopy(self.model, memo=frozen)
        model.requires_grad_(False)
        return Policy(model, self.tokenizer, lora_rank=self.lora_rank)

    # --- weights out --------------------------------------------------------------------------

    @torch.no_grad()
    def sampler_weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights under their checkpoint names, adapters folded in, for a sampler.

        A tied head appears once, as in a checkpoint.
        """
        base = self.model.get_base_model() if isinstance(self.model, PeftModel) else self.model
        yield from checkpoint_form(base, self._folded_weights())

    def _folded_weights(self) -> Iterator[tuple[str, Tensor]]:
        if not isinstance(self.model, PeftModel):
            yield from self.model.named_parameters()
            return
        base = self.model.get_base_model()
        adapted = {n: m for n, m in base.named_modules() if isinstance(m, LoraLayer)}
        for name, parameter in base.named_parameters():
            owner = name.removesuffix(".base_layer.weight")
            if owner in adapted:
                delta = adapted[owner].get_delta_weight("default")
                weight = plain(parameter)
                yield f"{owner}.weight", (weight.float() + delta.float()).to(weight.dtype)
            elif ".lora_" not in name:
                yield name.replace(".base_layer.", "."), plain(parameter)

    def save_model(self, directory: Path) -> None:
        """Write adapter or weights as safetensors, with tokenizer and chat template."""
        if isinstance(self.model, PeftModel):
            # Embeddings are never trained; left to itself peft asks a hub whether they grew.
            self.model.save_pretrained(directory, save_embedding_layers=False)
            # Peft leaves out where answers end.
            self.model.generation_config.save_pretrained(directory)
        else:
            self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def _hidden(self, row: PackedRow) -> Tensor:
        base = self.model.get_base_model() if isinstance(self.model, PeftModel) else self.model
        output = base.get_decoder()(
            input_ids=row.input_ids_S[None],
            position_ids=row.position_ids_S[None],
            attention_mask=attention.packed_mask(self.device),
            use_cache=False,
            layout=row.layout,
        )
        hidden_SH: Tensor = output.last_hidden_state[0]
        return hidden_SH if self._logit_scale == 1.0 else hidden_SH * self._logit_scale

    def _move_grad(self, name: str) -> Any:
        master = self.masters[name]

        def hook(parameter: Tensor) -> None:
            assert master.grad is not None and parameter.grad is not None
            master.grad += parameter.grad
            parameter.grad = None

        return hook

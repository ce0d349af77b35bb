"""TRL's losses of preferences with fixed log-probabilities; a script for the environment with TRL.

TRL's own loss methods run; only the model is replaced by what a case says. Cases come as JSON on
standard input, answers go to standard output.
"""

import collections
import json
import os
import sys
import types
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The sampler is not needed here, and takes seconds to import.
sys.modules["vllm"] = None  # type: ignore[assignment]

import torch  # noqa: E402
from trl import DPOTrainer, KTOTrainer  # noqa: E402
from trl.experimental.orpo import ORPOTrainer  # noqa: E402


class OneProcess:
    """Stands in for `accelerate.Accelerator`."""

    device = torch.device("cpu")

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    gather_for_metrics = gather


class Exact(torch.Tensor):
    """A tensor that keeps its float64 where ORPO asks for float32."""

    def float(self, *_: Any, **__: Any) -> torch.Tensor:  # type: ignore[override]
        return self if self.is_floating_point() else super().float()


class FixedModel:
    """Gives the same log-probabilities whatever it is asked."""

    training = True

    def __init__(self, logp: torch.Tensor) -> None:
        nothing = torch.zeros_like(logp)
        self._outputs = types.SimpleNamespace(
            log_probs=logp, entropy=nothing, mean_logits=nothing, is_top1=nothing.bool()
        )

    def __call__(self, **_: Any) -> Any:
        return self._outputs


def padded(rows: list[list[float]]) -> torch.Tensor:
    tensors = [torch.tensor(row, dtype=torch.float64) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


def masked(rows: list[list[float]]) -> dict[str, torch.Tensor]:
    """One prompt token before each answer."""
    width = 1 + max(map(len, rows))
    mask = [[0] + [1] * len(row) + [0] * (width - 1 - len(row)) for row in rows]
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    return {"input_ids": ids, "attention_mask": ids + 1, "completion_mask": torch.tensor(mask)}


def doubles(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def bare(kind: type, case: dict[str, Any], model: Any) -> Any:
    """A trainer of which only what its loss reads is there."""
    trainer = object.__new__(kind)
    vars(trainer).update(
        accelerator=OneProcess(),
        model=model,
        beta=case["beta"],
        aux_loss_enabled=False,
        precompute_ref_logps=True,
        _metrics={"train": collections.defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
        # Of DPO.
        ld_alpha=None,
        f_divergence_type="reverse_kl",
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        use_weighting=False,
        # Of KTO.
        loss_type="kto",
        calculate_KL=True,
        desirable_weight=1.0,
        undesirable_weight=1.0,
    )
    return trainer


def dpo(case: dict[str, Any], logp: torch.Tensor) -> torch.Tensor:
    trainer = bare(DPOTrainer, case, FixedModel(logp))
    count = len(case["better"])
    inputs = {
        **masked([*case["better"], *case["worse"]]),
        "ref_chosen_logps": doubles(case["reference"][:count]),
        "ref_rejected_logps": doubles(case["reference"][count:]),
    }
    return trainer._compute_loss(trainer.model, inputs, return_outputs=False)


def kto(case: dict[str, Any], logp: torch.Tensor) -> torch.Tensor:
    trainer = bare(KTOTrainer, case, FixedModel(logp))
    count = len(case["better"])
    trainer._compute_kl_logps = lambda *_: doubles(case["mismatched"])
    inputs = {
        **masked([*case["better"], *case["worse"]]),
        "label": torch.tensor([True] * count + [False] * count),
        "ref_logps": doubles(case["reference"]),
        "ref_KL_logps": doubles(case["reference_mismatched"]),
    }
    return trainer._compute_loss(trainer.model, inputs, return_outputs=False)


def orpo(case: dict[str, Any], logp: torch.Tensor) -> torch.Tensor:
    trainer = bare(ORPOTrainer, case, FixedModel(logp))
    lengths = doubles([len(row) for row in [*case["better"], *case["worse"]]])
    better, worse = (logp.sum(dim=1) / lengths).chunk(2)
    nothing = torch.zeros(1)
    # TRL's supervised term is over prompts too, which are not learnt here: the answers' stands in.
    trainer.concatenated_forward = lambda *_: (
        better.as_subclass(Exact),
        worse.as_subclass(Exact),
        nothing,
        nothing,
        -better.mean(),
    )
    loss, _ = trainer.get_batch_loss_metrics(trainer.model, {})
    return loss


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Loss, and gradients of all log-probabilities in a row: preferred answers first."""
    rows = [*case["better"], *case["worse"]]
    logp = padded(rows).requires_grad_()
    loss = {"dpo": dpo, "kto": kto, "orpo": orpo}[case["loss"]](case, logp)
    loss.backward()
    assert logp.grad is not None
    gradients = [x for grad, row in zip(logp.grad, rows, strict=True) for x in grad[: len(row)]]
    return {"loss": float(loss), "gradients": [float(x) for x in gradients]}


if __name__ == "__main__":
    json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)

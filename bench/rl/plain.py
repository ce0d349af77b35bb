"""A plain loop on a workload: `python -m bench.rl.plain WORKLOAD RECORD`.

What a competent person writes without our tricks, with our sampler: float32 weights under bfloat16
autocast, the completions of a prompt as one padded micro-batch, the logits of every position, old
log-probabilities computed before the update, AdamW. GRPO with clipping, averaged over tokens.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from bench.rl import record
from bench.rl.record import Recorder
from bench.rl.rewards import Rewards
from bench.rl.workload import Workload
from trainer.data import prompt_ids
from trainer.rollout.base import Completion, Sampling
from trainer.rollout.vllm_engine import VllmEngine

CLIP = 0.2
MAX_GRAD_NORM = 1.0


class Model:
    """The policy, its optimiser, and the way its weights take to the sampler."""

    def __init__(self, path: str) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self.model: Any = model.to(self.device).eval()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, weight_decay=0.0, fused=True
        )

    def logprobs(self, batch: "Batch", temperature: float) -> Tensor:
        """Log-probability of every token after the first of each row, ``[B, S - 1]``."""
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.model(input_ids=batch.ids_BS, attention_mask=batch.seen_BS).logits
        logits = logits[:, :-1].float() / temperature
        targets = batch.ids_BS[:, 1:]
        chosen: Tensor = logits.gather(2, targets[..., None]).squeeze(2)
        return chosen - logits.logsumexp(2)

    def update(self, learning_rate: float) -> None:
        """One optimiser step on the accumulated gradients."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad()

    def sampler_weights(self) -> Iterator[tuple[str, Tensor]]:
        """What the sampler loads, in its own type."""
        for name, parameter in self.model.named_parameters():
            yield name, parameter.detach().bfloat16()


class Batch:
    """The completions of one prompt, padded at the right to the longest."""

    def __init__(self, rows: list[tuple[list[int], list[int]]], device: torch.device) -> None:
        width = max(len(prompt) + len(completion) for prompt, completion in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        seen, learned = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for at, (prompt, completion) in enumerate(rows):
            end = len(prompt) + len(completion)
            ids[at, :end] = torch.tensor(prompt + completion)
            seen[at, :end] = 1
            learned[at, len(prompt) : end] = True
        self.ids_BS, self.seen_BS = ids.to(device), seen.to(device)
        self.learned_BS = learned[:, 1:].to(device)


def train_step(
    model: Model,
    groups: list[list[Completion]],
    prompts: list[list[int]],
    scores: list[list[float | None]],
    workload: Workload,
) -> None:
    """Compare the completions of each prompt and update once."""
    batches = [
        Batch([(prompt, c.token_ids) for c in group], model.device)
        for prompt, group in zip(prompts, groups, strict=True)
    ]
    tokens = sum(int(batch.learned_BS.sum()) for batch in batches)
    with torch.no_grad():
        old = [model.logprobs(batch, workload.temperature) for batch in batches]
    for batch, old_logp, group_scores in zip(batches, old, scores, strict=True):
        advantage = _advantages(group_scores).to(model.device)[:, None]
        ratio = (model.logprobs(batch, workload.temperature) - old_logp).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        loss = -torch.minimum(ratio * advantage, clipped * advantage)
        (loss[batch.learned_BS].sum() / tokens).backward()
    model.update(workload.learning_rate)


def _advantages(scores: list[float | None]) -> Tensor:
    known = torch.tensor([0.0 if score is None else score for score in scores])
    return (known - known.mean()) / (known.std() + 1e-4)


def main() -> None:
    """Train the workload's steps and leave the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("record", type=Path)
    args = parser.parse_args()
    workload, recorder = Workload.read(args.workload), Recorder()
    tokenizer, rewards = AutoTokenizer.from_pretrained(workload.start), Rewards(workload.grader)
    prompts = [prompt_ids(tokenizer, row["messages"]) for row in workload.rows]
    model, sampler = Model(workload.start), _sampler(max(map(len, prompts)), workload)
    sampler.load_weights(model)  # type: ignore[arg-type]
    recorder.begin()
    for step in range(workload.steps):
        part = slice(step * workload.prompts, (step + 1) * workload.prompts)
        rows, step_prompts = workload.rows[part], prompts[part]
        with recorder.phase("sampling"):
            groups = _sample(sampler, step_prompts, workload, step)
        with recorder.phase("grading"):
            ids = [completion.token_ids for group in groups for completion in group]
            texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
            flat = rewards(texts, [row for row in rows for _ in range(workload.group_size)])
        scores = [
            flat[at : at + workload.group_size] for at in range(0, len(flat), workload.group_size)
        ]
        with recorder.phase("updating"):
            train_step(model, groups, step_prompts, scores, workload)
        with recorder.phase("sync"):
            sampler.load_weights(model)  # type: ignore[arg-type]
        recorder.end_step(**_counts(groups, step_prompts, flat))
    record.write(args.record, recorder.steps)


def _sampler(longest_prompt: int, workload: Workload) -> VllmEngine:
    return VllmEngine(
        Path(workload.base),
        max_model_len=longest_prompt + workload.max_tokens,
        sequences=workload.prompts * workload.group_size,
        lora_rank=0,
        threads=0,
        dtype="bfloat16",
        memory_share=0.3,
        sleeps=True,
    )


def _sample(
    sampler: VllmEngine, prompts: list[list[int]], workload: Workload, step: int
) -> list[list[Completion]]:
    size = workload.group_size
    sampling = Sampling(workload.temperature, workload.max_tokens, seed=workload.seed + step)
    repeated = [prompt for prompt in prompts for _ in range(size)]
    found = dict(sampler.generate(repeated, sampling))
    return [[found[at * size + i] for i in range(size)] for at in range(len(prompts))]


def _counts(
    groups: list[list[Completion]], prompts: list[list[int]], scores: list[float | None]
) -> dict[str, Any]:
    completions = [completion for group in groups for completion in group]
    tokens, prompt_tokens = sum(len(c.token_ids) for c in completions), sum(map(len, prompts))
    known = [score for score in scores if score is not None]
    return {
        "completions": len(completions),
        "completion_tokens": tokens,
        "prompt_tokens": prompt_tokens,
        "truncated": sum(c.truncated for c in completions),
        "reward": sum(known) / len(known) if known else None,
        "trained": len(completions),
        "trained_completion_tokens": tokens,
        "trained_prompt_tokens": prompt_tokens,
    }


if __name__ == "__main__":
    main()

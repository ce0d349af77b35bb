"""Carry out an order with TRL's `GRPOTrainer`: `python -m bench.learning.with_trl ORDER STEPS`.

Runs in the environment that has TRL. What an order says is set; everything else is TRL's default,
save that activations are not computed twice, which is only slower here.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors.torch import save_file
from torch.optim.lr_scheduler import LambdaLR
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from bench.learning.order import CONTEXT_TOKENS, WEIGHTS, Order, Step
from bench.rl.rewards import Rewards
from bench.rl.workload import chat
from trainer.data import PromptRow, batch_for_step, load_prompts, read_rows
from trainer.schedule import rate_share

#: Completions of a micro-batch.
MICRO_BATCH = 16


class Reward:
    """The order's grader as a reward function, which remembers what the step's mean was."""

    def __init__(self, order: Order, rows: list[dict[str, Any]]) -> None:
        self.__name__ = "reward"
        self._rewards, self._rows = Rewards(order.grader), rows
        self.mean: float | None = None
        self.tokens = 0.0

    def __call__(
        self, completions: list[Any], completion_ids: list[list[int]], row: list[int], **_: Any
    ) -> list[float | None]:
        """Score the completions of one step."""
        texts = [messages[0]["content"] for messages in completions]
        scores = self._rewards(texts, [self._rows[index] for index in row])
        known = [score for score in scores if score is not None]
        self.mean = sum(known) / len(known) if known else None
        self.tokens = sum(map(len, completion_ids)) / len(completion_ids)
        return scores


class Notes(TrainerCallback):
    """Notes every step, and leaves the weights of those that are scored."""

    def __init__(self, order: Order, reward: Reward) -> None:
        self._order, self._reward = order, reward
        self._began = 0.0
        self.steps: list[Step] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The clock of a step runs from its sampling to its update."""
        self._began = time.perf_counter()

    def on_step_end(self, _args: Any, state: Any, _control: Any, *, model: Any, **_: Any) -> None:
        """Note the step; leaving weights is not part of it."""
        seconds = time.perf_counter() - self._began
        self.steps.append(Step(seconds, self._reward.mean, self._reward.tokens))
        if state.global_step in self._order.scored_steps:
            leave_weights(model, self._order.step_folder(state.global_step))


class Scheduled(GRPOTrainer):
    """A trainer whose learning rate rises and falls as the other side's."""

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        """The share of the full rate, by updates done."""
        self.lr_scheduler = LambdaLR(
            optimizer or self.optimizer, lambda done: rate_share(done + 1, num_training_steps)
        )
        return self.lr_scheduler


def leave_weights(model: Any, folder: Path) -> None:
    """Write the weights in the type that they are sampled in; a tied head stands there once."""
    folder.mkdir()
    weights = {
        name: value.detach().to(torch.bfloat16).contiguous()
        for name, value in model.named_parameters()
    }
    save_file(weights, folder / WEIGHTS)


def ordered_rows(order: Order, rows: list[PromptRow]) -> list[int]:
    """Indices of the rows of every step, one step after the other."""
    return [
        row.index
        for step in range(order.steps)
        for row in batch_for_step(rows, step, order.batch_size, order.seed)
    ]


def config(order: Order) -> GRPOConfig:
    """The order in TRL's words."""
    completions = order.batch_size * order.group_size
    micro = min(MICRO_BATCH, completions)
    return GRPOConfig(
        output_dir=str(Path(order.work) / "trl"),
        seed=order.seed,
        max_steps=order.steps,
        learning_rate=order.learning_rate,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=completions // micro,
        num_generations=order.group_size,
        max_completion_length=order.max_completion_tokens,
        temperature=order.temperature,
        loss_type="grpo",
        beta=0.0,
        mask_truncated_completions=False,
        gradient_checkpointing=False,
        shuffle_dataset=False,
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def train(order: Order) -> list[Step]:
    """Train; leaves the weights of the steps that are scored and returns every step."""
    tokenizer = AutoTokenizer.from_pretrained(order.start)
    rows = read_rows(Path(order.train))
    prompts = load_prompts(
        Path(order.train),
        tokenizer,
        room=order.max_completion_tokens,
        context=CONTEXT_TOKENS,
    )
    picked = ordered_rows(order, prompts)
    reward = Reward(order, rows)
    notes = Notes(order, reward)
    trainer = Scheduled(
        model=order.start,
        args=config(order),
        reward_funcs=reward,
        train_dataset=Dataset.from_list([{"prompt": chat(rows[i]), "row": i} for i in picked]),
        processing_class=tokenizer,
        callbacks=[notes],
    )
    trainer.train()
    return notes.steps


def main() -> None:
    """Train, and write the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("order", type=Path)
    parser.add_argument("steps", type=Path)
    args = parser.parse_args()
    steps = train(Order.read(args.order))
    args.steps.write_text(json.dumps([dataclasses.asdict(step) for step in steps]))


if __name__ == "__main__":
    main()

"""TRL's `GRPOTrainer` on a workload: `python -m bench.rl.with_trl WORKLOAD RECORD SETTING`.

Runs in an environment that has TRL. Nothing of it is changed: a subclass and a callback only look
at the clock.
"""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from bench.rl import record
from bench.rl.record import Recorder
from bench.rl.rewards import Rewards
from bench.rl.trl_settings import SETTINGS
from bench.rl.workload import Workload, chat


class Timed(GRPOTrainer):
    """A trainer whose sampling is timed."""

    recorder: Recorder

    def _generate(self, prompts: Any) -> Any:
        with self.recorder.phase("sampling"):
            return super()._generate(prompts)


class StepClock(TrainerCallback):
    """Everything within a step that is neither sampling nor grading is updating."""

    def __init__(self, recorder: Recorder, reward: "Reward") -> None:
        self._recorder, self._reward = recorder, reward
        self._updating = ExitStack()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """The first step begins."""
        self._recorder.begin()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Data is there."""
        self._updating.enter_context(self._recorder.phase("updating"))

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """The optimiser has stepped."""
        self._updating.close()
        self._recorder.end_step(**self._reward.counts)


class Reward:
    """The reward function, which also counts what it is shown."""

    def __init__(self, workload: Workload, recorder: Recorder, tokenizer: Any) -> None:
        self.__name__ = "reward"
        self._workload, self._recorder = workload, recorder
        self._rewards = Rewards(workload.grader)
        self._ends = {tokenizer.eos_token_id}
        self._prompt_tokens = [
            len(tokenizer.apply_chat_template(chat(r), add_generation_prompt=True)["input_ids"])
            for r in workload.rows
        ]
        self.counts: dict[str, Any] = {}

    def __call__(
        self, completions: list[Any], completion_ids: list[list[int]], row: list[int], **_: Any
    ) -> list[float | None]:
        """Score the completions of one step."""
        with self._recorder.phase("grading"):
            texts = [messages[0]["content"] for messages in completions]
            scores = self._rewards(texts, [self._workload.rows[index] for index in row])
        known = [score for score in scores if score is not None]
        tokens = sum(map(len, completion_ids))
        prompts = sum(self._prompt_tokens[index] for index in dict.fromkeys(row))
        self.counts = {
            "completions": len(scores),
            "completion_tokens": tokens,
            "prompt_tokens": prompts,
            "truncated": sum(ids[-1] not in self._ends for ids in completion_ids),
            "reward": sum(known) / len(known) if known else None,
            "trained": len(scores),
            "trained_completion_tokens": tokens,
            "trained_prompt_tokens": prompts,
        }
        return scores


def config(workload: Workload, setting: str, folder: str) -> GRPOConfig:
    """TRL's defaults, with what the workload asks for and the setting's changes."""
    changes = {"per_device_train_batch_size": 8, **SETTINGS[setting]}
    completions = workload.prompts * workload.group_size
    micro = min(changes.pop("per_device_train_batch_size"), completions)
    return GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=completions // micro,
        num_generations=workload.group_size,
        max_completion_length=workload.max_tokens,
        temperature=workload.temperature,
        learning_rate=workload.learning_rate,
        max_steps=workload.steps,
        seed=workload.seed,
        shuffle_dataset=False,
        use_cpu=not torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **changes,
    )


def main() -> None:
    """Train the workload's steps and leave the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("setting", choices=SETTINGS)
    args = parser.parse_args()
    workload, recorder = Workload.read(args.workload), Recorder()
    tokenizer = AutoTokenizer.from_pretrained(workload.start)
    reward = Reward(workload, recorder, tokenizer)
    rows = [{"prompt": chat(r), "row": index} for index, r in enumerate(workload.rows)]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Timed(
            model=workload.start,
            args=config(workload, args.setting, folder),
            reward_funcs=reward,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[StepClock(recorder, reward)],
        )
        trainer.recorder = recorder
        trainer.train()
    record.write(args.record, recorder.steps)


if __name__ == "__main__":
    main()

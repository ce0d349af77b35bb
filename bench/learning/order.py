"""What both trainers are given for one run: weights to start from, rows, grader and sizes."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.learning.tasks import BATCH_SIZE, GROUP_SIZE, SCORE_EVERY, Task

#: The file of weights that a side leaves for a step, in the folder of that step.
WEIGHTS = "model.safetensors"

#: Tokens of the context of SmolLM2-135M.
CONTEXT_TOKENS = 2048


@dataclass(frozen=True)
class Order:
    """One run. Both sides train all weights with AdamW, the same rows at each step and one update a
    step on the mean over completions of the mean over tokens (`grpo`), without KL.

    ``train`` and ``start`` are paths; weights are left in ``work/step-N`` after every
    ``score_every`` steps.
    """

    start: str
    train: str
    work: str
    grader: dict[str, Any]
    seed: int
    steps: int
    learning_rate: float
    max_completion_tokens: int
    batch_size: int = BATCH_SIZE
    group_size: int = GROUP_SIZE
    temperature: float = 1.0
    score_every: int = SCORE_EVERY
    #: What our side samples with.
    engine: str = "vllm"

    @classmethod
    def of(cls, task: Task, *, seed: int, start: Path, train: Path, work: Path) -> "Order":
        """The run of a task with a seed."""
        return cls(
            start=str(start),
            train=str(train),
            work=str(work),
            grader=task.grader,
            seed=seed,
            steps=task.steps,
            learning_rate=task.learning_rate,
            max_completion_tokens=task.max_completion_tokens,
        )

    def write(self, path: Path) -> None:
        """Write the order for a process that carries it out."""
        path.write_text(json.dumps(dataclasses.asdict(self), ensure_ascii=False))

    @classmethod
    def read(cls, path: Path) -> "Order":
        """Read what :meth:`write` wrote."""
        return cls(**json.loads(path.read_text()))

    def step_folder(self, step: int) -> Path:
        """Where the weights after a step are left."""
        return Path(self.work) / f"step-{step}"

    @property
    def scored_steps(self) -> list[int]:
        """The steps whose weights are scored; the start is one."""
        return sorted({*range(0, self.steps, self.score_every), self.steps})


@dataclass(frozen=True)
class Step:
    """What a side says of one step: the seconds from its first sample to weights that sample."""

    seconds: float
    reward: float | None
    completion_tokens: float

"""What is learned: the demo's task and three of reasoning-gym, with the grader a user would write.

Sizes and rates were chosen on other seeds than those that are measured, and hold for both trainers.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from bench.machine import ROOT

#: The folder of the demo's rows and grader.
DEMO = ROOT / "examples" / "support"

#: Rows of every task that are trained on and that are held out.
TRAIN_ROWS = 512
HELD_OUT_ROWS = 128

#: The supervised start: demonstrations of an update, and the peak of its learning rate.
START_BATCH = 16
START_LEARNING_RATE = 1e-4

#: The reinforcement: prompts of a step, completions of each, steps between two scores.
BATCH_SIZE = 8
GROUP_SIZE = 8
SCORE_EVERY = 6


@dataclass(frozen=True)
class Task:
    """One task and the run that learns it; lengths in tokens.

    ``generator`` names a dataset of reasoning-gym and ``config`` are its arguments; without a
    generator the rows are the demo's. The start is short on purpose: it leaves something to learn.
    """

    name: str
    grader: dict[str, Any]
    max_completion_tokens: int
    start_epochs: int
    generator: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    demonstrations: int = 64
    steps: int = 24
    learning_rate: float = 2e-5

    @property
    def start(self) -> dict[str, Any]:
        """What its rows and its supervised start are made from."""
        return {
            "generator": self.generator,
            "config": self.config,
            "demonstrations": self.demonstrations,
            "epochs": self.start_epochs,
            "batch": START_BATCH,
            "learning_rate": START_LEARNING_RATE,
        }


#: Half for the share of words that stand in their place, half for all of them.
_WORDS_SOURCE = """\
def grade(sample, item):
    said = [word.strip() for word in sample["output_text"].split(",")]
    wanted = [word.strip() for word in item["answer"].split(",")]
    right = sum(a == b for a, b in zip(said, wanted)) / max(len(said), len(wanted))
    return 0.5 * right + 0.5 * (said == wanted)
"""

WORDS = {"type": "python", "name": "words", "source": _WORDS_SOURCE}
NUMBER = {"type": "number", "name": "sum", "reference": "{{item.answer}}", "extract": "last"}
TICKET: dict[str, Any] = json.loads((DEMO / "grader.json").read_text(encoding="utf-8"))

TASKS = {
    task.name: task
    for task in (
        Task(name="tickets", grader=TICKET, max_completion_tokens=56, start_epochs=8),
        Task(
            name="sums",
            generator="chain_sum",
            config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2},
            grader=NUMBER,
            max_completion_tokens=12,
            start_epochs=3,
        ),
        Task(
            name="word_sorting",
            generator="word_sorting",
            config={"min_words": 3, "max_words": 3, "max_word_length": 7},
            grader=WORDS,
            max_completion_tokens=24,
            start_epochs=3,
        ),
        Task(
            name="word_reversal",
            generator="word_sequence_reversal",
            config={"min_words": 3, "max_words": 5},
            grader=WORDS,
            max_completion_tokens=32,
            start_epochs=3,
        ),
    )
}

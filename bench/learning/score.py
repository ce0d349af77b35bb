"""Score left weights on held-out rows: `python -m bench.learning.score ORDER ROWS OUT`.

The same for both sides: this project's sampler and grader. The score is the mean of what is sampled
as in training, for that is what both sides raise; greedy completions are scored besides.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from transformers import AutoTokenizer

from bench.learning.order import CONTEXT_TOKENS, WEIGHTS, Order
from graders.client import start_grader_process
from trainer.data import PromptRow, load_prompts
from trainer.rollout.base import Sampling
from trainer.rollout.vllm_engine import VllmEngine
from trainer.sampling import Collector, check_failures

#: Completions that are sampled for each held-out row.
SAMPLES = 2


class LeftWeights:
    """What a sampler takes over from a policy: the weights, here from a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sampler_weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights under their checkpoint names."""
        with safe_open(self._path, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118
                yield name, weights.get_tensor(name)


def score(order: Order, rows_path: Path) -> list[dict[str, Any]]:
    """Sampled and greedy score of every scored step, with each row's sampled one."""
    tokenizer = AutoTokenizer.from_pretrained(order.start)
    rows = load_prompts(
        rows_path, tokenizer, room=order.max_completion_tokens, context=CONTEXT_TOKENS
    )
    longest = max(len(row.token_ids) for row in rows)
    engine = VllmEngine(
        Path(order.start),
        max_model_len=longest + order.max_completion_tokens,
        sequences=64,
        lora_rank=0,
        threads=0,
        dtype="bfloat16",
        memory_share=0.4,
        sleeps=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        grader = start_grader_process(order.grader, folder)
        try:
            collector = Collector(engine, grader.client, tokenizer, _silent)
            return [scored(collector, rows, order, step) for step in order.scored_steps]
        finally:
            grader.close()


def scored(collector: Collector, rows: list[PromptRow], order: Order, step: int) -> dict[str, Any]:
    """Score the weights that were left for a step; the start is what the sampler holds at first.

    Raises:
        GraderFailures: a completion could not be graded.
    """
    if step > 0:
        collector.engine.load_weights(LeftWeights(order.step_folder(step) / WEIGHTS))
    sampled = _scores(collector, rows, order, SAMPLES, order.temperature)
    greedy = _scores(collector, rows, order, 1, 0.0)
    return {
        "step": step,
        "score": sum(sampled) / len(sampled),
        "greedy": sum(greedy) / len(greedy),
        "rows": [round(score, 4) for score in sampled],
    }


def _scores(
    collector: Collector, rows: list[PromptRow], order: Order, samples: int, temperature: float
) -> list[float]:
    """The mean score of each row's completions."""
    repeated = [row for row in rows for _ in range(samples)]
    rollouts = collector.collect(
        repeated, Sampling(temperature, order.max_completion_tokens, seed=0)
    )
    check_failures(rollouts, 0.0)
    scores = [rollout.score for rollout in rollouts if rollout.score is not None]
    return [sum(scores[i : i + samples]) / samples for i in range(0, len(scores), samples)]


def _silent(*_: int) -> None:
    """Nobody watches the progress."""


def main() -> None:
    """Score, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("order", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.write_text(json.dumps(score(Order.read(args.order), args.rows)))


if __name__ == "__main__":
    main()

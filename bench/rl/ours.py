"""The trainer on a workload: `python -m bench.rl.ours WORKLOAD RECORD [--max-staleness 1]`.

It runs as it does for a user, with its grader process beside it; its own reports say how long
phases took, and the clock between two reports how long a step took.
"""

import argparse
import io
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
import zstandard
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from bench.rl import record
from bench.rl.job import write_job
from bench.rl.peak import peak_tflops
from bench.rl.record import Step
from bench.rl.workload import Workload
from trainer.channel import Channel
from trainer.data import prompt_ids
from trainer.rollout.base import Completion, RolloutEngine
from trainer.rollout.transformers_engine import TransformersEngine
from trainer.rollout.vllm_engine import VllmEngine
from trainer.run import run


class SamplingClock:
    """Counts the seconds in which samplers work, not those in which what they made is graded."""

    seconds = 0.0

    @classmethod
    def watch(cls, engine: type[RolloutEngine]) -> None:
        """Count the seconds of every sampler of this class."""
        generate = engine.generate

        def timed(self: Any, *args: Any, **options: Any) -> Iterator[tuple[int, Completion]]:
            completions = generate(self, *args, **options)
            while True:
                began = time.perf_counter()
                found = next(completions, None)
                cls.seconds += time.perf_counter() - began
                if found is None:
                    return
                yield found

        engine.generate = timed  # type: ignore[method-assign]


class _Report(NamedTuple):
    """What was reported, when, and how long the sampler had worked until then."""

    type: str
    fields: dict[str, Any]
    at: float
    sampled_s: float
    memory: dict[str, Any]


class AllMeasured(Exception):
    """The last step has been reported; what follows is the export, which is no part of a step."""


class Clock(Channel):
    """Reports go nowhere; when each came, and how long the sampler had worked, is kept."""

    def __init__(self, steps: int) -> None:
        super().__init__(io.StringIO(), None)
        self._steps = steps
        self.reports: list[_Report] = []

    def report(self, type: str, /, **fields: Any) -> None:
        """Note a report, and write it as the supervisor would get it.

        Raises:
            AllMeasured: it is that of the last step.
        """
        super().report(type, **fields)
        now, memory = time.perf_counter(), record.memory()
        self.reports.append(_Report(type, fields, now, SamplingClock.seconds, memory))
        if type == "metrics" and fields["step"] == self._steps:
            raise AllMeasured


def main() -> None:
    """Train the workload's steps and leave the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("--max-staleness", type=int, default=0)
    args = parser.parse_args()
    workload = Workload.read(args.workload)
    clock = Clock(workload.steps)
    SamplingClock.watch(VllmEngine)
    SamplingClock.watch(TransformersEngine)
    with tempfile.TemporaryDirectory(prefix="rft-bench-") as folder:
        job = Path(folder) / "job"
        write_job(workload, job, max_staleness=args.max_staleness)
        with suppress(AllMeasured):
            run(job, clock)
        steps = _steps(workload, job, clock)
        if args.max_staleness:
            # Its last step has nothing left to sample ahead, and would seem cheap.
            del steps[-1]
        metrics = [r.fields["data"] for r in clock.reports if r.type == "metrics"]
    record.write(
        args.record,
        steps,
        mismatch=[data["mismatch_mean"] for data in metrics],
        parameters=_parameters(workload.base),
        peak_tflops=peak_tflops(workload.base),
        device_mib=torch.cuda.max_memory_reserved() / 2**20 if torch.cuda.is_available() else 0.0,
    )


def _steps(workload: Workload, job: Path, clock: Clock) -> list[Step]:
    tokenizer = AutoTokenizer.from_pretrained(workload.start)
    last = next(r for r in clock.reports if r.type == "phase" and r.fields["phase"] == "rl")
    paths = {r.fields["step"]: r.fields["path"] for r in clock.reports if r.type == "rollouts"}
    steps = []
    for report in clock.reports:
        if report.type != "metrics":
            continue
        own = report.fields["data"]["timing"]["step"]
        step = Step(
            seconds=report.at - last.at,
            phases={
                "sampling": report.sampled_s - last.sampled_s,
                "updating": own["training"],
                "sync": own["sync"],
            },
            reward=report.fields["data"]["train_mean_reward"],
            memory=report.memory,
            **_counts(job / paths[report.fields["step"]], tokenizer),
        )
        steps.append(step)
        last = report
    return steps


def _counts(path: Path, tokenizer: Any) -> dict[str, Any]:
    text = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().decode()
    lines = [json.loads(line) for line in text.splitlines()]
    trained = [line for line in lines if line["advantage"]]
    return {
        "completions": len(lines),
        "completion_tokens": sum(len(line["token_ids"]) for line in lines),
        "prompt_tokens": _prompt_tokens(lines, tokenizer),
        "truncated": sum(line["truncated"] for line in lines),
        "trained": len(trained),
        "trained_completion_tokens": sum(len(line["token_ids"]) for line in trained),
        "trained_prompt_tokens": _prompt_tokens(trained, tokenizer),
    }


def _parameters(path: str) -> int:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            AutoConfig.from_pretrained(path)
        )
    return sum(parameter.numel() for parameter in model.parameters())


def _prompt_tokens(lines: list[dict[str, Any]], tokenizer: Any) -> int:
    messages = {line["group"]: line["messages"] for line in lines}
    return sum(len(prompt_ids(tokenizer, each)) for each in messages.values())


if __name__ == "__main__":
    main()

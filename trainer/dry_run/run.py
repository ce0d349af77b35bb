"""A dry run: sample some rows, grade, look at what a job would learn from it."""

import time
from collections.abc import Iterator
from typing import Any

from graders.outcome import to_wire
from trainer.data import batch_for_step
from trainer.dry_run.estimate import Rates
from trainer.dry_run.report import make_report
from trainer.errors import Paused
from trainer.packing import TOKEN_BUDGET, Group, micro_batches, split
from trainer.reinforcement.parts import ReinforcementParts
from trainer.reinforcement.rollouts import draw_seed
from trainer.rollout.base import Sampling
from trainer.sampling import Rollout
from trainer.spec import DryRunSpec
from trainer.spread import groups_of

#: Completions that are sampled at a time, at least one group; between two such parts a dry run says
#: how far it is and hears that it must stop.
PART = 64


class DryRun:
    """One dry run with the parts of a job; the policy is never updated."""

    def __init__(self, job: ReinforcementParts, plan: DryRunSpec) -> None:
        self._job, self._plan = job, plan

    def execute(self) -> None:
        """Sample, grade, report."""
        job, channel = self._job, self._job.channel
        total = self._plan.rows * self._plan.samples_per_row
        channel.report("started", step=0, total_steps=total, resumed=False)
        if not job.begins_as_base:
            job.collector.engine.load_weights(job.policy)
        channel.report("phase", phase="dry_run")
        parts = self._sample()
        rollouts = [rollout for part, _ in parts for rollout in part]
        groups = groups_of(rollouts, self._plan.samples_per_row)
        rates = Rates.of(parts, update_tokens_per_s=self._measure_update(groups))
        report = make_report(
            job.spec,
            groups,
            rates,
            rows_in_file=len(job.rows),
            validation_rows=len(job.evaluator.rows),
        )
        job.reports.dry_run(report, _sample_lines(rollouts))

    def _sample(self) -> list[tuple[list[Rollout], float]]:
        """Parts of the rollouts, whole groups each, with the seconds that each part took."""
        spec, plan, hp = self._job.spec, self._plan, self._job.hp
        # Those that a job with this seed would begin with.
        picked = batch_for_step(self._job.rows, 0, plan.rows, spec.seed)
        width = max(1, PART // plan.samples_per_row)
        parts = []
        for number, start in enumerate(range(0, len(picked), width)):
            if self._job.channel.pause_requested.is_set():
                raise Paused("The dry run was stopped; it starts again from the beginning.")
            chosen = picked[start : start + width]
            rows = [row for row in chosen for _ in range(plan.samples_per_row)]
            draws = Sampling(hp.temperature, hp.max_completion_tokens, draw_seed(spec.seed, number))
            began = time.perf_counter()
            rollouts = self._job.collector.collect(rows, draws, group_size=plan.samples_per_row)
            parts.append((rollouts, time.perf_counter() - began))
            done = min(start + width, len(picked)) * plan.samples_per_row
            total = len(picked) * plan.samples_per_row
            self._job.channel.report("progress", phase="dry_run", done=done, total=total)
        return parts

    def _measure_update(self, groups: list[list[Rollout]]) -> float:
        """Completion tokens per second of forward and backward, without an update."""
        packed = [
            row
            for group in groups
            for row in split(
                Group(group[0].row.token_ids, [r.completion.token_ids for r in group]),
                TOKEN_BUDGET,
            )
        ]
        first = [packed[i] for i in next(iter(micro_batches(packed, TOKEN_BUDGET)))]
        policy = self._job.policy
        seconds = 0.0
        for _ in range(2):  # the first time warms up
            began = time.perf_counter()
            logp, _ = policy.logprobs(first, temperature=self._job.hp.temperature)
            logp.mean().backward()  # type: ignore[no-untyped-call]
            seconds = time.perf_counter() - began
        policy.discard_gradients()
        return sum(len(ids) for group in first for ids in group.completions) / seconds


def _sample_lines(rollouts: list[Rollout]) -> Iterator[dict[str, Any]]:
    for rollout in rollouts:
        yield {
            "row": rollout.row.index,
            "messages": rollout.row.messages,
            "item": rollout.row.item,
            "text": rollout.text,
            "tokens": len(rollout.completion.token_ids),
            "truncated": rollout.completion.truncated,
            "outcome": to_wire(rollout.outcome),
            "grader_latency_s": rollout.latency_s,
            "traces": [trace.wire() for trace in rollout.traces],
        }

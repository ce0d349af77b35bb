"""What a reinforcement job samples, grades and evaluates with."""

import functools
from pathlib import Path

from trainer.architecture import check_architecture
from trainer.channel import Channel
from trainer.data import load_prompts
from trainer.evaluation import Evaluator, mean_score
from trainer.job import Job
from trainer.objectives.objective import Objective
from trainer.parallel import Team
from trainer.reinforcement.ahead import Ahead
from trainer.reinforcement.rollouts import Sampled, sample_step
from trainer.rollout.base import RolloutEngine
from trainer.sampling import Collector, Grader, Rollout
from trainer.spec import TrainSpec
from trainer.watch.monitor import Monitor


class ReinforcementParts(Job):
    """Rows, sampler, grader and evaluations; what comes when is said by who inherits them.

    ``team`` are the processes that share the passes, ``monitor`` is a grader that only watches;
    both may be set after construction.
    """

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel, grader: Grader) -> None:
        super().__init__(spec, job_dir, channel)
        self.method, self.hp = spec.reinforcement, spec.reinforcement.hyperparameters
        self.objective, self.team = Objective.of(self.hp), Team()
        self.monitor: Monitor | None = None
        load = functools.partial(
            load_prompts,
            tokenizer=self.policy.tokenizer,
            room=self.hp.max_completion_tokens,
            context=spec.model.context_tokens,
        )
        self.rows = load(job_dir / spec.data.train)
        validation = load(job_dir / spec.data.validation) if spec.data.validation else []
        longest_prompt = max(len(row.token_ids) for row in [*self.rows, *validation])
        check_architecture(
            self.policy,
            max((row.token_ids for row in self.rows), key=len),
            longest=longest_prompt + self.hp.max_completion_tokens,
        )
        engine = self._start_engine(longest_prompt)
        self.collector = Collector(engine, grader, self.policy.tokenizer, self.reports.progress)
        self.evaluator = Evaluator(
            self.collector,
            validation,
            min(self.hp.eval_samples, len(validation)),
            self.hp.max_completion_tokens,
            self.reports.out / "reports",
            self.method.failure_share_limit,
        )
        self.ahead = Ahead(self.sample, staleness=self.hp.max_staleness, steps=self.hp.max_steps)
        self._synced_at = 0

    @property
    def needs_reference(self) -> bool:
        """Whether the policy is held to where it started, or its distance is watched."""
        return self.objective.needs_reference or self.spec.limits.max_kl > 0

    # --- sampling -----------------------------------------------------------------------------

    def sample(self, step: int) -> Sampled:
        """Sample and grade a step, from 0, with the weights that the sampler holds."""
        return sample_step(
            self.collector,
            self.rows,
            self.hp,
            step=step,
            seed=self.spec.seed,
            weights=self._synced_at,
        )

    def sync(self) -> None:
        """Hand the sampler the policy's weights."""
        self.collector.engine.load_weights(self.policy)
        self._synced_at = self.progress.step

    # --- evaluation ---------------------------------------------------------------------------

    def evaluate_all(self, stage: str) -> list[Rollout]:
        """Evaluate every validation row with the sampler's weights, and report it."""
        if not self.evaluator.rows:
            return []
        self.channel.report("phase", phase=f"{stage}_evaluation")
        rollouts = self.evaluator.full(may_fail=stage == "base")
        self._look_at(rollouts[: self.evaluator.selection_rows])
        summary = self.evaluator.stage(stage, self.progress.step, rollouts)
        if self.monitor is not None:
            summary["monitor"] = self.monitor.metrics()
        self.progress.stages.append(summary)
        self.reports.evaluation(stage, self.progress.step, self.evaluator.path(stage), summary)
        return rollouts

    def evaluate_step(self) -> list[Rollout] | None:
        """The rows that choose, where a finished step brings an evaluation; else ``None``."""
        if not self.evaluator.rows:
            return None
        if self.progress.step == self.hp.max_steps:
            return self.evaluate_all("final")[: self.evaluator.selection_rows]
        if self.progress.step % self.hp.eval_interval == 0:
            return self._look_at(self.evaluator.selection())
        return None

    def validate(self) -> float | None:
        """Mean reward of the policy as it is on the rows that choose; ``None`` without such."""
        self.sync()
        return mean_score(self.evaluator.selection()) if self.evaluator.selection_rows else None

    def selection_reward(self) -> float | None:
        """Mean reward of the rows that choose, by the last full evaluation."""
        stages = self.progress.stages
        reward: float | None = stages[-1]["selection"]["reward"]["mean"] if stages else None
        return reward

    def _look_at(self, rollouts: list[Rollout]) -> list[Rollout]:
        """Show the watch, and the monitor, an evaluation of the rows that choose."""
        if rollouts:
            monitor = None if self.monitor is None else self.monitor.scores(rollouts)
            scores = [rollout.score for rollout in rollouts]
            self.watch.validated(self.progress.step, scores, monitor=monitor)
        return rollouts

    def _start_engine(self, longest_prompt: int) -> RolloutEngine:
        if self.spec.engine == "transformers":
            from trainer.rollout.transformers_engine import TransformersEngine

            return TransformersEngine(self.policy)
        from trainer.rollout.vllm_engine import VllmEngine

        return VllmEngine(
            self.spec.model.path,
            max_model_len=longest_prompt + self.hp.max_completion_tokens,
            sequences=self.hp.batch_size * self.hp.group_size,
            # Over a base in 4 bits the sampler gets whole weights: its own base is another.
            lora_rank=self.spec.adapter.rank if self.spec.adapter.quantization == "none" else 0,
            threads=self.spec.threads,
            dtype=self.spec.dtype,
            memory_share=self.spec.sampler_memory_share,
            sleeps=self.hp.max_staleness == 0,
            end_ids=self.policy.end_ids,
        )

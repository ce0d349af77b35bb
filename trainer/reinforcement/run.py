"""A reinforcement job: base evaluation, warm start, reinforcement, final evaluation, export."""

import functools
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from graders.client import GraderClient, start_grader_process
from trainer import checkpoint
from trainer.architecture import check_architecture
from trainer.channel import Channel
from trainer.checkpoint import Beside
from trainer.data import load_prompts
from trainer.demonstrations import load_demonstrations
from trainer.dry_run.run import DryRun
from trainer.errors import Paused
from trainer.evaluation import Evaluator, mean_score, table
from trainer.job import PROOF_ROWS, Job
from trainer.objectives.objective import Objective
from trainer.packing import Group
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.reinforcement.ahead import Ahead
from trainer.reinforcement.critic import make_critic
from trainer.reinforcement.probe import probe
from trainer.reinforcement.rollouts import Sampled, sample_step
from trainer.reinforcement.step import reinforcement_step
from trainer.reinforcement.sync import check_greedy
from trainer.reinforcement.update import Learner
from trainer.rollout.base import RolloutEngine
from trainer.sampling import Collector, Grader, Rollout
from trainer.spec import TrainSpec
from trainer.warm_start import WarmStartState, warm_start


def run_reinforcement(spec: TrainSpec, job_dir: Path, channel: Channel, stack: ExitStack) -> None:
    """Run a job or a dry run; ``stack`` ends what was started for it."""
    grader = _connect_grader(spec, job_dir, stack)
    # Before the sampler, which binds this process to some cores, and what it starts with it.
    team = stack.enter_context(Team.start(spec, job_dir))
    job = ReinforcementJob(spec, job_dir, channel, grader)
    grader.waiting = job.reports.grading
    if spec.reinforcement.dry_run is None:
        stack.callback(job.ahead.close)
        job.team = team
        job.execute()
    else:
        DryRun(job, spec.reinforcement.dry_run).execute()


class ReinforcementJob(Job):
    """The parts of a reinforcement job, and the order in which they run."""

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel, grader: Grader) -> None:
        super().__init__(spec, job_dir, channel)
        self.method, self.hp = spec.reinforcement, spec.reinforcement.hyperparameters
        self.objective, self.team = Objective.of(self.hp), Team()
        load = functools.partial(
            load_prompts,
            tokenizer=self.policy.tokenizer,
            room=self.hp.max_completion_tokens,
            context=spec.model.context_tokens,
        )
        self.rows = load(job_dir / spec.data.train)
        check_architecture(self.policy, self.rows)
        validation = load(job_dir / spec.data.validation) if spec.data.validation else []
        engine = self._start_engine(max(len(r.token_ids) for r in [*self.rows, *validation]))
        self.collector = Collector(engine, grader, self.policy.tokenizer, self.reports.progress)
        self.evaluator = Evaluator(
            self.collector,
            validation,
            min(self.hp.eval_samples, len(validation)),
            self.hp.max_completion_tokens,
            self.reports.out / "reports",
            self.method.failure_share_limit,
        )
        self.ahead = Ahead(self._sample, staleness=self.hp.max_staleness, steps=self.hp.max_steps)
        self._synced_at = 0
        self._warm: WarmStartState | None = None
        self._critic: Policy | None = None
        self._learner: Learner | None = None

    def execute(self) -> None:
        """Base evaluation, warm start, reinforcement, final evaluation, export."""
        resume = self.resumable
        if resume is not None:
            self._resume(resume)
        self.channel.report(
            "started",
            step=self.progress.step,
            total_steps=self.hp.max_steps,
            resumed=resume is not None,
        )
        if resume is None:
            self._begin()
        if self._warm is not None:
            self._warm_start(self._warm)
        if self._learner is None:
            self._learner = self._begin_reinforcement()
        self.channel.report("phase", phase="rl")
        last_metrics: dict[str, Any] = {}
        while self.progress.step < self.hp.max_steps:
            last_metrics = self._reinforce(self._learner)
        self._export(last_metrics)

    # --- phases -------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.spec.init is not None or self.spec.adapter.quantization != "none":
            self._sync()
        self._evaluate_all("base")
        if self.method.warm_start is not None:
            self.policy.start_optimizer()
            self._warm = WarmStartState()
            self.progress.warm_start = self._warm.wire()
            self._pause_if_asked("before the warm start")

    def _resume(self, directory: Path) -> None:
        self.policy.start_optimizer()
        self.progress = checkpoint.read(directory, self.policy)
        self.watch.begin(self.progress.watch)
        if self.progress.warm_start is not None:
            best = checkpoint.read_best(directory)
            self._warm = WarmStartState(**self.progress.warm_start, best=best)
            return
        if self.objective.needs_reference:
            self.reference = checkpoint.read_reference(directory, self.policy)
        if self.objective.has_critic:
            self._critic = make_critic(self.policy)
            self._critic.start_optimizer()
            checkpoint.read_critic(directory, self._critic)
        self.ahead.restore(checkpoint.read_ahead(directory), self.rows)
        self._sync()
        self._learner = self._make_learner()

    def _warm_start(self, state: WarmStartState) -> None:
        assert self.method.warm_start is not None
        self.channel.report("phase", phase="warm_start")
        source = self.spec.data.warm_start or self.spec.data.train
        demonstrations = load_demonstrations(
            self.job_dir / source,
            self.policy,
            reference_field=self.method.warm_start.reference_field,
            context=self.spec.model.context_tokens,
        )
        warm_start(
            self.policy,
            demonstrations,
            self.method.warm_start,
            seed=self.spec.seed,
            state=state,
            validate=self._validate,
            report=self.reports.warm_start_step,
            after_step=self._after_warm_step,
        )
        self._warm = self.progress.warm_start = None
        self.progress.trained_tokens += state.trained_tokens
        self._sync()
        self._evaluate_all("warm_start")

    def _after_warm_step(self, state: WarmStartState) -> None:
        self.progress.warm_start = state.wire()
        self._pause_if_asked(f"after step {state.step} of the warm start")
        if state.step % self.spec.checkpoint_interval == 0:
            self.save_checkpoint({"full_valid_mean_reward": None})

    def _begin_reinforcement(self) -> Learner:
        self.policy.start_optimizer()
        if self.objective.needs_reference:
            self.reference = self.policy.reference()
        if self.objective.has_critic:
            self._critic = make_critic(self.policy)
            self._critic.start_optimizer()
        learner = self._make_learner()
        self.save_checkpoint({"full_valid_mean_reward": self._selection_reward()})
        if self.channel.pause_requested.is_set():
            raise Paused("Paused before the first step.")
        return learner

    def _reinforce(self, learner: Learner) -> dict[str, Any]:
        began, step = time.perf_counter(), self.progress.step
        sampled = self._probe() if step == 0 else self.ahead.take(step)
        self.ahead.begin(step + 1)
        with self.keeping_what_was_learned():
            result = reinforcement_step(
                learner,
                sampled,
                self.hp,
                step=step,
                failure_share_limit=self.method.failure_share_limit,
            )
        waiting = self.ahead.finish()
        self.progress.step += 1
        self.progress.trained_tokens += result.trained_tokens
        updated = time.perf_counter()
        self._sync()
        synced = time.perf_counter()
        valid = self._evaluate_step()
        ended = time.perf_counter()
        result.add_time(
            waiting=waiting, sync=synced - updated, evaluation=ended - synced, whole=ended - began
        )
        data = self.reports.step(result, valid, self.progress.step)
        self._keep(data, validated=valid is not None)
        return data

    def _keep(self, data: dict[str, Any], *, validated: bool) -> None:
        """Write a checkpoint where one is due, and stop where that was asked for."""
        step = self.progress.step
        if step == self.hp.max_steps:
            return
        self._pause_if_asked(f"after step {step}", data)
        if validated or step % self.spec.checkpoint_interval == 0:
            self.save_checkpoint(data)

    def _export(self, metrics: dict[str, Any]) -> None:
        self.channel.report("phase", phase="export")
        self.reports.result_file("evaluation.json", table(self.progress.stages))
        rows = [*self.evaluator.rows, *self.rows][:PROOF_ROWS]
        greedy = self.collector.collect(rows, self.evaluator.sampling)
        check_greedy(self.policy, greedy, self.spec.limits.max_mismatch)
        self.export(metrics, [Group(r.row.token_ids, [r.completion.token_ids]) for r in greedy])

    # --- sampling -----------------------------------------------------------------------------

    def _sample(self, step: int) -> Sampled:
        return sample_step(
            self.collector,
            self.rows,
            self.hp,
            step=step,
            seed=self.spec.seed,
            weights=self._synced_at,
        )

    def _probe(self) -> Sampled:
        if self.method.spread_check == "off" or not self.objective.compares_groups:
            return self.ahead.take(0)
        found = probe(self.spec, self._sample)
        self.reports.probe(found)
        if found.refused:
            raise found.refusal(self.hp.max_completion_tokens)
        return found.first

    def _sync(self) -> None:
        self.collector.engine.load_weights(self.policy)
        self._synced_at = self.progress.step

    # --- evaluation ---------------------------------------------------------------------------

    def _evaluate_all(self, stage: str) -> list[Rollout]:
        if not self.evaluator.rows:
            return []
        self.channel.report("phase", phase=f"{stage}_evaluation")
        rollouts = self.evaluator.full(may_fail=stage == "base")
        summary = self.evaluator.stage(stage, self.progress.step, rollouts)
        self.progress.stages.append(summary)
        self.reports.evaluation(stage, self.progress.step, self.evaluator.path(stage), summary)
        return rollouts

    def _evaluate_step(self) -> list[Rollout] | None:
        if not self.evaluator.rows:
            return None
        if self.progress.step == self.hp.max_steps:
            return self._evaluate_all("final")[: self.evaluator.selection_rows]
        if self.progress.step % self.hp.eval_interval == 0:
            return self.evaluator.selection()
        return None

    def _validate(self) -> float | None:
        self._sync()
        return mean_score(self.evaluator.selection()) if self.evaluator.selection_rows else None

    def _selection_reward(self) -> float | None:
        """The mean reward of the rows that choose, by the last full evaluation."""
        stages = self.progress.stages
        reward: float | None = stages[-1]["selection"]["reward"]["mean"] if stages else None
        return reward

    # --- helpers ------------------------------------------------------------------------------

    def beside(self) -> Beside:
        """What a checkpoint keeps of this method."""
        return Beside(
            reference=self.reference,
            critic=self._critic,
            best=None if self._warm is None else self._warm.best,
            ahead=self.ahead.state(),
        )

    def _pause_if_asked(self, where: str, metrics: dict[str, Any] | None = None) -> None:
        # Asked once: a wish that comes while the checkpoint is written waits for the next step.
        if self.channel.pause_requested.is_set():
            self.save_checkpoint(metrics or {})
            raise Paused(f"Paused {where}.")

    def _make_learner(self) -> Learner:
        return Learner(
            self.policy,
            self.hp,
            reference=self.reference,
            critic=self._critic,
            team=self.team,
            watch=self.watch,
            seed=self.spec.seed,
            max_mismatch=self.spec.limits.max_mismatch,
        )

    def _start_engine(self, longest_prompt: int) -> RolloutEngine:
        if self.spec.engine == "transformers":
            from trainer.rollout.transformers_engine import TransformersEngine

            return TransformersEngine(self.policy)
        from trainer.rollout.vllm_engine import VllmEngine

        return VllmEngine(
            self.spec.model.path,
            max_model_len=longest_prompt + self.hp.max_completion_tokens,
            # Over a base in 4 bits the sampler gets whole weights: its own base is another.
            lora_rank=self.spec.adapter.rank if self.spec.adapter.quantization == "none" else 0,
            threads=self.spec.threads,
            dtype=self.spec.dtype,
            memory_share=self.spec.sampler_memory_share,
        )


def _connect_grader(spec: TrainSpec, job_dir: Path, stack: ExitStack) -> GraderClient:
    path = os.environ.get("RFT_GRADER_SOCKET")
    if path is not None:
        client = GraderClient(path)
        stack.callback(client.close)
        return client
    process = start_grader_process(spec.reinforcement.grader, job_dir)
    stack.callback(process.close)
    return process.client

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
from trainer.data import load_demonstrations, load_prompts
from trainer.dry_run.run import DryRun
from trainer.errors import Paused
from trainer.evaluation import Evaluator, mean_score, table
from trainer.job import PROOF_ROWS, Job
from trainer.packing import Group
from trainer.reinforcement.probe import probe
from trainer.reinforcement.step import Sampled, grpo_step, sample_step
from trainer.rollout.base import RolloutEngine
from trainer.sampling import Collector, Grader, Rollout
from trainer.spec import TrainSpec
from trainer.warm_start import warm_start


def run_reinforcement(spec: TrainSpec, job_dir: Path, channel: Channel, stack: ExitStack) -> None:
    """Run a job or a dry run; ``stack`` ends the grader's connection or process."""
    grader = _connect_grader(spec, job_dir, stack)
    job = ReinforcementJob(spec, job_dir, channel, grader)
    grader.waiting = job.reports.grading
    if spec.reinforcement.dry_run is None:
        job.execute()
    else:
        DryRun(job, spec.reinforcement.dry_run).execute()


class ReinforcementJob(Job):
    """The parts of a reinforcement job, and the order in which they run."""

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel, grader: Grader) -> None:
        super().__init__(spec, job_dir, channel)
        self.method, self.hp = spec.reinforcement, spec.reinforcement.hyperparameters
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
        self.channel.report("phase", phase="rl")
        last_metrics: dict[str, Any] = {}
        while self.progress.step < self.hp.max_steps:
            last_metrics = self._reinforce()
        self._export(last_metrics)

    # --- phases -------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.spec.init is not None:
            self.collector.engine.load_weights(self.policy)
        rollouts = self._evaluate_all("base")
        if self.method.warm_start is not None:
            self._warm_start()
            rollouts = self._evaluate_all("warm_start")
        self.policy.start_optimizer()
        if self.hp.kl_coefficient > 0:
            self.reference = self.policy.reference()
        reward = mean_score(rollouts[: self.evaluator.selection_rows])
        self.save_checkpoint({"full_valid_mean_reward": reward})

    def _resume(self, directory: Path) -> None:
        self.policy.start_optimizer()
        self.progress = checkpoint.read(directory, self.policy)
        if self.hp.kl_coefficient > 0:
            self.reference = checkpoint.read_reference(directory, self.policy)
        self.collector.engine.load_weights(self.policy)

    def _warm_start(self) -> None:
        assert self.method.warm_start is not None
        self.channel.report("phase", phase="warm_start")
        source = self.spec.data.warm_start or self.spec.data.train
        demonstrations = load_demonstrations(
            self.job_dir / source,
            self.policy,
            reference_field=self.method.warm_start.reference_field,
            context=self.spec.model.context_tokens,
        )
        result = warm_start(
            self.policy,
            demonstrations,
            self.method.warm_start,
            seed=self.spec.seed,
            validate=self._validate,
            report=self.reports.warm_start_step,
        )
        self.progress.trained_tokens += result.trained_tokens
        self.collector.engine.load_weights(self.policy)

    def _reinforce(self) -> dict[str, Any]:
        step = self.progress.step
        result = grpo_step(
            self.policy,
            self.reference,
            self._probe() if step == 0 else self._sample(step),
            self.hp,
            step=step,
            failure_share_limit=self.method.failure_share_limit,
        )
        began = time.perf_counter()
        self.collector.engine.load_weights(self.policy)
        self.progress.step += 1
        self.progress.trained_tokens += result.trained_tokens
        synced = time.perf_counter()
        valid = self._evaluate_step()
        result.add_time(sync=synced - began, evaluation=time.perf_counter() - synced)
        data = self.reports.step(result, valid, self.progress.step)
        if self.progress.step < self.hp.max_steps:
            # Asked once: a wish that comes while the checkpoint is written waits for the next step.
            pause = self.channel.pause_requested.is_set()
            due = self.progress.step % self.spec.checkpoint_interval == 0
            if pause or due or valid is not None:
                self.save_checkpoint(data)
            if pause:
                raise Paused(f"Paused after step {self.progress.step}.")
        return data

    def _sample(self, step: int) -> Sampled:
        return sample_step(self.collector, self.rows, self.hp, step=step, seed=self.spec.seed)

    def _probe(self) -> Sampled:
        if self.method.spread_check == "off":
            return self._sample(0)
        found = probe(self.spec, self._sample)
        self.reports.probe(found)
        if found.refused:
            raise found.refusal(self.hp.max_completion_tokens)
        return found.first

    def _export(self, metrics: dict[str, Any]) -> None:
        self.channel.report("phase", phase="export")
        self.reports.result_file("evaluation.json", table(self.progress.stages))
        rows = [*self.evaluator.rows, *self.rows][:PROOF_ROWS]
        greedy = self.collector.collect(rows, self.evaluator.sampling)
        self.export(metrics, [Group(r.row.token_ids, [r.completion.token_ids]) for r in greedy])

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
        self.collector.engine.load_weights(self.policy)
        return mean_score(self.evaluator.selection()) if self.evaluator.selection_rows else None

    # --- helpers ------------------------------------------------------------------------------

    def _start_engine(self, longest_prompt: int) -> RolloutEngine:
        if self.spec.engine == "transformers":
            from trainer.rollout.transformers_engine import TransformersEngine

            return TransformersEngine(self.policy)
        from trainer.rollout.vllm_engine import VllmEngine

        return VllmEngine(
            self.spec.model.path,
            max_model_len=longest_prompt + self.hp.max_completion_tokens,
            lora_rank=self.spec.adapter.rank,
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

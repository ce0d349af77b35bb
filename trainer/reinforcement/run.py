"""A reinforcement job: base evaluation, warm start, reinforcement, final evaluation, export."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trainer import checkpoint
from trainer.architecture import check_window
from trainer.channel import Channel
from trainer.checkpoint import Beside
from trainer.connections import connect_grader, connect_monitor
from trainer.demonstrations import Demonstration, load_demonstrations
from trainer.dry_run.run import DryRun
from trainer.errors import Paused
from trainer.evaluation import table
from trainer.job import PROOF_ROWS
from trainer.means import Means
from trainer.packing import Group
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.reinforcement.critic import make_critic
from trainer.reinforcement.parts import ReinforcementParts
from trainer.reinforcement.probe import probe
from trainer.reinforcement.rollouts import Sampled
from trainer.reinforcement.step import reinforcement_step
from trainer.reinforcement.sync import check_follows, check_greedy
from trainer.reinforcement.update import Learner
from trainer.sampling import Grader
from trainer.spec import TrainSpec
from trainer.spread import groups_of
from trainer.supervised.loss import accumulate
from trainer.warm_start import WarmStartState, warm_start
from trainer.watch.finding import Stop
from trainer.watch.monitor import Monitor

#: Prompts by which the sampler is seen to follow the policy.
FOLLOWED_PROMPTS = 4


def run_reinforcement(spec: TrainSpec, job_dir: Path, channel: Channel, stack: ExitStack) -> None:
    """Run a job or a dry run; ``stack`` ends what was started for it."""
    grader = connect_grader(spec, job_dir, stack)
    if spec.reinforcement.dry_run is not None:
        parts = ReinforcementParts(spec, job_dir, channel, grader)
        grader.waiting = parts.reports.grading
        DryRun(parts, spec.reinforcement.dry_run).execute()
        return
    monitor = connect_monitor(spec, job_dir, stack)
    # Before the sampler, which binds this process to some cores, and what it starts with it.
    team = stack.enter_context(Team.start(spec, job_dir))
    job = ReinforcementJob(spec, job_dir, channel, grader)
    job.team = team
    grader.waiting = job.reports.grading
    if monitor is not None:
        monitor.waiting = job.reports.grading
        job.monitor = Monitor(monitor, job.watch.tell)
    stack.callback(job.ahead.close)
    job.execute()


class ReinforcementJob(ReinforcementParts):
    """The order in which a reinforcement job runs."""

    def __init__(self, spec: TrainSpec, job_dir: Path, channel: Channel, grader: Grader) -> None:
        super().__init__(spec, job_dir, channel, grader)
        self._warm: WarmStartState | None = None
        self._critic: Policy | None = None
        self._learner: Learner | None = None

    def execute(self) -> None:
        """Base evaluation, warm start, reinforcement, final evaluation, export."""
        # Before anything counts: a sampler that does not follow ruins a job without an error.
        # It leaves the sampler with the policy's weights, whatever its own files hold.
        prompts = sorted((row.token_ids for row in self.rows), key=len)[:FOLLOWED_PROMPTS]
        check_follows(self.policy, self.collector.engine, prompts)
        resume = self.resumable
        if resume is not None:
            self._resume(resume)
        self.watch.begin(self.progress.watch)
        self.channel.report(
            "started",
            step=self.progress.step,
            total_steps=self.hp.max_steps,
            resumed=resume is not None,
            warm_start_step=None if self._warm is None else self._warm.step,
        )
        if resume is None:
            self._begin()
        if self._warm is not None:
            self._warm_start(self._warm)
        if self._learner is None:
            self._learner = self._begin_reinforcement()
        self.channel.report("phase", phase="rl")
        metrics: dict[str, Any] = {}
        while self.progress.step < self.hp.max_steps:
            stop = self.watch.before_step("rl")
            if stop is not None:
                metrics = self._stop(stop, metrics)
                break
            metrics = self._reinforce(self._learner)
        self._export(metrics)

    # --- phases -------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.evaluate_all("base")
        if self.method.warm_start is not None:
            self.policy.start_optimizer()
            self._warm = WarmStartState()
            self.progress.warm_start = self._warm.wire()
            self._pause_if_asked("before the warm start")

    def _resume(self, directory: Path) -> None:
        self.policy.start_optimizer()
        self.progress = checkpoint.read(directory, self.policy)
        if self.progress.warm_start is not None:
            best = checkpoint.read_best(directory)
            self._warm = WarmStartState(**self.progress.warm_start, best=best)
            return
        if self.needs_reference:
            self.reference = checkpoint.read_reference(directory, self.policy)
        if self.objective.has_critic:
            self._critic = make_critic(self.policy)
            self._critic.start_optimizer()
            checkpoint.read_critic(directory, self._critic)
        self.ahead.restore(checkpoint.read_ahead(directory), self.rows)
        self.sync()
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
        lengths = [len(d.prompt_ids) + len(d.target_ids) for d in demonstrations]
        check_window(self.policy, max(lengths))
        warm_start(
            self.policy,
            demonstrations,
            self.method.warm_start,
            seed=self.spec.seed,
            state=state,
            learn=self._imitate,
            validate=self.validate,
            watch=self.watch,
            report=self.reports.warm_start_step,
            after_step=self._after_warm_step,
        )
        self._warm = self.progress.warm_start = None
        self.progress.trained_tokens += state.trained_tokens
        self.sync()
        self.evaluate_all("warm_start")

    def _imitate(self, batch: list[Demonstration]) -> Means:
        return self.watch.within_memory(
            self.policy, lambda tokens: accumulate(self.team, self.policy, batch, tokens)
        )

    def _after_warm_step(self, state: WarmStartState) -> None:
        self.progress.warm_start = state.wire()
        self._pause_if_asked(f"after step {state.step} of the warm start")
        if state.step % self.spec.checkpoint_interval == 0:
            self.save_checkpoint({})

    def _begin_reinforcement(self) -> Learner:
        self.policy.start_optimizer()
        if self.needs_reference:
            self.reference = self.policy.reference()
        if self.objective.has_critic:
            self._critic = make_critic(self.policy)
            self._critic.start_optimizer()
        if self.hp.max_staleness and self.hp.sampler_correction == "none":
            self.reports.warn(
                "With max_staleness above 0 completions come from an older policy, and "
                "sampler_correction 'none' treats them as the present one's; choose another."
            )
        learner = self._make_learner()
        self.save_checkpoint({"full_valid_mean_reward": self.selection_reward()})
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
        self.sync()
        synced = time.perf_counter()
        valid = self.evaluate_step()
        ended = time.perf_counter()
        result.add_time(
            waiting=waiting, sync=synced - updated, evaluation=ended - synced, whole=ended - began
        )
        if valid and self.monitor is not None:
            result.metrics["monitor"] = self.monitor.metrics()
        data = self.reports.step(result, valid, self.progress.step)
        self.watch.counted("rl", data["sampled_tokens"] + result.trained_tokens)
        groups = groups_of(result.rollouts, self.hp.group_size)
        self.watch.reinforced(self.progress.step, groups, data)
        self._keep(data, validated=valid is not None)
        return data

    def _stop(self, stop: Stop, metrics: dict[str, Any]) -> dict[str, Any]:
        """End training before its last step; what was learned so far is evaluated as the result."""
        self.reports.stopped(stop)
        if not self.evaluator.rows:
            return metrics
        self.evaluate_all("final")
        return {**metrics, "full_valid_mean_reward": self.selection_reward()}

    def _keep(self, data: dict[str, Any], *, validated: bool) -> None:
        """Write a checkpoint where one is due, and stop where that was asked for."""
        step = self.progress.step
        if step == self.hp.max_steps:
            return
        self._pause_if_asked(f"after step {step}", data)
        due = validated or step % self.spec.checkpoint_interval == 0
        if due and not self.watch.breached:
            self.save_checkpoint(data)

    def _export(self, metrics: dict[str, Any]) -> None:
        self.channel.report("phase", phase="export")
        self.reports.result_file("evaluation.json", table(self.progress.stages))
        rows = [*self.evaluator.rows, *self.rows][:PROOF_ROWS]
        greedy = self.collector.collect(rows, self.evaluator.sampling)
        check_greedy(self.policy, greedy, self.spec.limits.max_mismatch)
        self.export(metrics, [Group(r.row.token_ids, [r.completion.token_ids]) for r in greedy])

    def _probe(self) -> Sampled:
        if self.method.spread_check == "off" or not self.objective.compares_groups:
            return self.ahead.take(0)
        found = probe(self.spec, self.sample)
        self.reports.probe(found)
        if found.refused:
            raise found.refusal(self.hp.max_completion_tokens)
        return found.first

    # --- checkpoints and networks --------------------------------------------------------------

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

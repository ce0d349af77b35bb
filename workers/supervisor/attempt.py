"""One try at a job: prepare its directory, run a trainer in it, conclude."""

import logging
import os
import shutil
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import select

from core.errors import NO_SPACE, ConfigurationError, StaleFence, StorageError
from core.fenced import FencedWriter
from core.models import Job, Metric
from core.phases import STEPS_OF
from core.process.environment import clean_environment
from graders.errors import GraderProcessError
from trainer import allocator
from workers.context import Context
from workers.evals.of_job import JobRuns
from workers.supervisor import jobdir, names
from workers.supervisor.checkpoints import CheckpointStore, forget_states
from workers.supervisor.dry_run import with_judge_prices
from workers.supervisor.grace import Grace, WorkerStopping
from workers.supervisor.graders import start_graders
from workers.supervisor.heartbeat import Heartbeat
from workers.supervisor.outcome import MAX_FAILED_ATTEMPTS, Ending, conclude, explain
from workers.supervisor.process import TrainerProcess
from workers.supervisor.protocol import CheckpointWritten, ProtocolError, parse
from workers.supervisor.reports import Recorder
from workers.supervisor.results import step_metrics_csv
from workers.supervisor.retry import retrying
from workers.supervisor.uploads import Uploads

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conduct:
    """How a supervisor goes about its work.

    Attributes:
        command: starts the trainer; the job directory is appended.
        store_retry_s: waits between the tries to reach the object store, in seconds.
        poll_s: how often the job's row and the worker's own end are looked at.
        exit_grace_s: how long a trainer may take to exit after its last report.
        upload_grace_s: when this worker ends, how long uploads may take after the trainer's time.
    """

    command: tuple[str, ...] = (sys.executable, "-m", "trainer")
    store_retry_s: tuple[float, ...] = (1, 2, 4, 8, 15, 30)
    poll_s: float = 0.2
    exit_grace_s: float = 30.0
    upload_grace_s: float = 4.0


class Attempt:
    """A held job and everything needed to run it once."""

    def __init__(
        self,
        context: Context,
        writer: FencedWriter,
        heartbeat: Heartbeat,
        *,
        stopping: threading.Event,
        conduct: Conduct,
    ) -> None:
        self._context, self._writer, self._heartbeat = context, writer, heartbeat
        self._stopping, self._conduct = stopping, conduct
        self._grace = Grace(
            stopping, trainer_s=context.settings.stop_grace_s, uploads_s=conduct.upload_grace_s
        )
        self._job = self._read_job()
        self._directory = jobdir.path_of(context, writer.job_id, writer.fence)

    def run(self) -> None:
        """Run the job and move it to its next state.

        Raises:
            StaleFence: the job was cancelled or taken over; nothing of it runs here any more.
        """
        if self._job.failed_attempts >= MAX_FAILED_ATTEMPTS:
            # A worker that dies with a job is counted by whoever takes the job from it.
            ending: Ending | None = Ending("worker_lost", "the worker was lost.")
        else:
            ending = self._run_guarded()
        if ending is None:
            self._tidy_up()
        else:
            logger.warning("%s: %s: %s", self._job.id, ending.reason, ending.message)
            failed_attempts = self._read_job().failed_attempts
            kind = self._job.kind
            conclude(self._writer, ending, failed_attempts=failed_attempts, kind=kind)

    def _run_guarded(self) -> Ending | None:
        try:
            with ExitStack() as stack:
                stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
                retrying(self._prepare, waits_s=self._conduct.store_retry_s, stop=self._stopping)
                if self._stopping.is_set():
                    return Ending("worker_stopping", "The worker shut down before training began.")
                return self._run_trainer(stack)
        except WorkerStopping as error:
            return Ending("worker_stopping", str(error))
        except jobdir.DataGone as error:
            return Ending("data_gone", error.message, code=error.code, param=error.param)
        except StorageError as error:
            return Ending("store_unreachable", error.message)
        except ConfigurationError as error:
            return Ending("no_model", error.message)
        except (ProtocolError, GraderProcessError) as error:
            return Ending("error", str(error))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            where = self._context.settings.data_dir
            return Ending("no_disk", f"No space is left under {where}. Free some, then resume.")

    def _prepare(self) -> None:
        jobdir.prepare(self._context, self._job, self._writer, self._directory)

    def _run_trainer(self, stack: ExitStack) -> Ending | None:
        environment = clean_environment(os.environ)
        sockets = start_graders(
            self._job,
            self._context.judges,
            self._directory,
            environment=environment,
            stack=stack,
        )
        trainer = TrainerProcess(
            [*self._conduct.command, str(self._directory)],
            directory=self._directory,
            environment={**environment, **allocator.ENVIRONMENT, **sockets},
        )
        uploads = Uploads(self._conduct.store_retry_s)
        # Unwound in reverse: the trainer dies first, so a lost job is not trained while an upload
        # comes to its end; uploads end before the pipe that they write to is closed.
        stack.callback(trainer.close)
        stack.callback(uploads.close, keep_on=self._may_upload)
        stack.callback(trainer.kill)
        recorder = self._recorder(trainer, uploads)
        cut_short = self._follow(trainer, recorder, uploads)
        exit_code = trainer.wait(
            self._conduct.exit_grace_s, keep_on=lambda: not self._grace.trainer_is_over()
        )
        self._drain(uploads)
        if cut_short is not None:
            return cut_short
        ending = explain(recorder.ended, exit_code, stopping=self._stopping.is_set())
        if ending is None and recorder.final is not None:
            self._succeed(recorder, recorder.final, uploads)
            return None
        if ending is None and recorder.dry_run is not None:
            self._succeed_dry_run(recorder, recorder.dry_run, uploads)
            return None
        if ending is None or ending.reason in ("error", "killed"):
            logger.error("The trainer's last words:\n%s", trainer.log_tail())
        return ending or Ending("error", "The trainer finished without a result.")

    def _recorder(self, trainer: TrainerProcess, uploads: Uploads) -> Recorder:
        checkpoints = CheckpointStore(
            self._context,
            self._job,
            self._writer,
            self._directory,
            lambda path: trainer.send({"type": "checkpoint_stored", "path": path}),
        )
        store = self._context.store
        runs = JobRuns(self._context, self._job, self._writer, self._directory)
        return Recorder(self._writer, store, checkpoints, uploads, runs, self._directory)

    def _follow(
        self, trainer: TrainerProcess, recorder: Recorder, uploads: Uploads
    ) -> Ending | None:
        """Record reports until the trainer closes its pipe; an ending when it is cut short."""
        limit_s = self._context.settings.stall_timeout_s
        last_sign, pause_sent = time.monotonic(), False
        while not trainer.finished:
            for line in trainer.read_lines(self._conduct.poll_s):
                recorder.record(parse(line))
                last_sign = time.monotonic()
            self._check_held()
            uploads.check()
            if not pause_sent and (self._stopping.is_set() or self._heartbeat.status == "pausing"):
                trainer.send({"type": "pause"})
                pause_sent = True
            if self._grace.trainer_is_over():
                trainer.kill()
                message = "The worker shut down before the trainer had come to the end of a step."
                return Ending("worker_stopping", message)
            if time.monotonic() - last_sign > limit_s:
                trainer.kill()
                return Ending("stalled", f"The trainer was silent for {limit_s:g} seconds.")
        return None

    def _succeed(self, recorder: Recorder, final: CheckpointWritten, uploads: Uploads) -> None:
        uploads.submit(lambda: self._publish("step_metrics.csv", self._step_metrics()))
        self._publish_files(recorder, uploads)
        name = jobdir.final_name(self._context, self._job)
        self._writer.event(f"New fine-tuned model created: {name}", phase="export", step=final.step)
        self._writer.transition(
            "succeeded", fine_tuned_model=name, trained_tokens=final.trained_tokens
        )

    def _succeed_dry_run(
        self, recorder: Recorder, report: dict[str, Any], uploads: Uploads
    ) -> None:
        self._publish_files(recorder, uploads)
        priced = with_judge_prices(report, self._context.judges)
        self._writer.transition("succeeded", report=priced)

    def _publish_files(self, recorder: Recorder, uploads: Uploads) -> None:
        for filename, path in recorder.result_files.items():
            uploads.submit(partial(self._publish, filename, path.read_bytes()))
        self._drain(uploads)

    def _publish(self, filename: str, content: bytes) -> None:
        key = names.result_key(self._job.id, filename=filename, fence=self._writer.fence)
        sha256 = self._context.store.put_bytes(key, content)
        self._writer.result_file(filename, key, len(content), sha256)

    def _step_metrics(self) -> bytes:
        method = self._job.method["type"]
        with self._context.sessions() as session:
            steps = session.scalars(
                select(Metric.data)
                .where(Metric.job_id == self._job.id, Metric.phase == STEPS_OF[method])
                .order_by(Metric.step)
            ).all()
        return step_metrics_csv(steps, method=method)

    def _tidy_up(self) -> None:
        try:
            forget_states(self._context, self._job.id)
        except StorageError as error:
            # The job is done and its model is safe; what stays behind is only space.
            logger.warning("The states of %s stay in the store: %s", self._job.id, error)

    def _drain(self, uploads: Uploads) -> None:
        stored = uploads.drain(keep_on=lambda: not self._heartbeat.lost and self._may_upload())
        self._check_held()
        if not stored:
            raise WorkerStopping("The worker shut down before everything was stored.")

    def _may_upload(self) -> bool:
        return not self._grace.uploads_are_over()

    def _check_held(self) -> None:
        if self._heartbeat.lost:
            raise StaleFence(self._writer.job_id, self._writer.fence)

    def _read_job(self) -> Job:
        with self._context.sessions() as session:
            return session.get_one(Job, self._writer.job_id)

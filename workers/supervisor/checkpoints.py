"""Store checkpoints, and let go of those that nobody needs."""

from collections.abc import Callable, Iterable
from pathlib import Path

from sqlalchemy import Select, select, update

from core import manifest
from core.artifacts import root_of
from core.fenced import FencedWriter
from core.models import Checkpoint, Job
from workers.context import Context
from workers.proving import expected
from workers.supervisor import names
from workers.supervisor.jobdir import final_name
from workers.supervisor.protocol import CheckpointWritten

#: Checkpoints that stay besides the last one: those with the best validation reward, or of a job
#: without rewards those of its last epochs.
BEST_KEPT = 3
REWARD = "full_valid_mean_reward"


class CheckpointStore:
    """Store the checkpoints of one attempt; runs on the uploads thread.

    Args:
        stored: told the trainer's path of each checkpoint once it is safe.
    """

    def __init__(
        self,
        context: Context,
        job: Job,
        writer: FencedWriter,
        directory: Path,
        stored: Callable[[str], None],
    ) -> None:
        self._context, self._job, self._writer = context, job, writer
        self._directory, self._stored = directory, stored

    def store(self, report: CheckpointWritten) -> None:
        """Commit the objects, then the row; raises StorageError and StaleFence.

        Safe to repeat when the store failed half-way: rows come last.
        """
        folder = self._directory / report.path
        root = names.checkpoint_root(
            self._job.id,
            step=report.step,
            fence=self._writer.fence,
            final=report.final,
            phase=report.phase,
        )
        if report.state:
            manifest.commit(self._context.store, f"{root}/state", folder / "state")
        model = manifest.commit(self._context.store, names.model_prefix(root), folder / "model")
        prove_serving = self._keep_expected(report, folder, names.model_prefix(root))
        self._writer.checkpoint(
            report.step,
            self._name(report),
            names.model_prefix(root),
            report.kind,
            {"step": report.step, **report.metrics},
            is_final=report.final,
            has_state=report.state,
            phase=report.phase,
            bytes=sum(entry.bytes for entry in model.files),
            proof=report.proof,
            prove_serving=prove_serving,
        )
        self._writer.event(
            f"Checkpoint created at step {report.step}", step=report.step, phase=report.phase
        )
        self._stored(report.path)

    def _keep_expected(self, report: CheckpointWritten, folder: Path, prefix: str) -> bool:
        """Store what the serving service is to be asked for; False when it is not to be asked."""
        recorded = folder / "proof.json"
        wanted = report.final and report.proof is not None and self._context.settings.serving_proof
        if not (wanted and recorded.is_file()):
            return False
        self._context.store.put_file(expected.key(prefix), recorded)
        return True

    def let_go(self) -> None:
        """Drop what newer checkpoints have superseded; raises StorageError and StaleFence."""
        with self._context.sessions() as session:
            rows = session.scalars(_kept(self._job.id)).all()
        retired, stateless = superseded(rows)
        # Rows first: an object without a row is waste, a row without its objects is a lie.
        if retired:
            self._writer.retire([row.id for row in retired])
        if stateless:
            self._writer.drop_state([row.id for row in stateless])
        for row in retired:
            self._context.store.delete_prefix(root_of(row.object_prefix))
        for row in stateless:
            self._context.store.delete_prefix(names.state_prefix(row.object_prefix))

    def _name(self, report: CheckpointWritten) -> str:
        if report.final:
            return final_name(self._context, self._job)
        return names.checkpoint_name(
            self._job.model,
            organization=self._context.settings.organization_id,
            suffix=self._job.suffix,
            job_id=self._job.id,
            step=report.step,
            phase=report.phase,
        )


def superseded(rows: Iterable[Checkpoint]) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """Split off what need not be kept: whole checkpoints, and the states of older ones.

    Kept are the final one, the last one, and the three with the best validation reward (of equals
    the later), or at the ends of the last three epochs. Only the last one needs its state.
    """
    steps = sorted((row for row in rows if not row.is_final), key=_order)
    if not steps:
        return [], []
    ranked = _by_reward(steps) or _by_epoch(steps)
    kept = {row.id for row in [*ranked[:BEST_KEPT], steps[-1]]}
    retired = [row for row in steps if row.id not in kept]
    resumable = [row for row in steps if row.has_state]
    return retired, [row for row in resumable[:-1] if row.id in kept]


def _order(row: Checkpoint) -> tuple[bool, int]:
    """Where a checkpoint lies along its job."""
    return row.phase != "warm_start", row.step


def _by_reward(steps: list[Checkpoint]) -> list[Checkpoint]:
    rated = [row for row in steps if row.metrics.get(REWARD) is not None]
    return sorted(rated, key=lambda row: (row.metrics[REWARD], row.step), reverse=True)


def _by_epoch(steps: list[Checkpoint]) -> list[Checkpoint]:
    """The first checkpoint after each epoch, the latest epoch first."""
    first: dict[int, Checkpoint] = {}
    for row in steps:
        first.setdefault(int(row.metrics.get("epoch", 0)), row)
    return [first[epoch] for epoch in sorted(first, reverse=True) if epoch > 0]


def forget_states(context: Context, job_id: str) -> None:
    """Delete the resumable state of a job that has succeeded and will not go on."""
    with context.sessions() as session:
        rows = session.scalars(_kept(job_id).where(Checkpoint.has_state)).all()
    with context.sessions.begin() as session:
        session.execute(
            update(Checkpoint).where(Checkpoint.job_id == job_id).values(has_state=False)
        )
    for row in rows:
        context.store.delete_prefix(names.state_prefix(row.object_prefix))


def _kept(job_id: str) -> Select[Checkpoint]:
    return select(Checkpoint).where(Checkpoint.job_id == job_id, Checkpoint.deleted_at.is_(None))

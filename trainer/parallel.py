"""Data-parallel updates: several processes share the micro-batches of each one.

The first process, rank 0, does all that a job does: it samples, grades, updates, reports and writes
checkpoints. The others hold a copy of the model and wait. For each update the leader tells them
which function to run on which items; every rank runs its share and adds up gradients, and the sum
arrives at the leader, which alone has an optimiser. Weights travel to the others with each request,
so they need no state: a resumed job, a warm start taken back or a step tried again reach them by
themselves.

Losses carry their final weights before they are shared out, so gradients are summed and never
divided: any number of processes computes the same update, up to the rounding of float32 sums.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from trainer.errors import RankLost
from trainer.group import Group, GroupBroken, open_store
from trainer.spec import TrainSpec

#: How long the other processes may take to import what they need, in seconds.
START_S = 300.0

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Runs forward and backward on one item with the models of its rank; must be a module's function.
Part = Callable[[Mapping[str, Any], Item], Result]


class Team:
    """The processes of one job, as its leader sees them; alone by default.

    Args:
        group: connects the ranks; ``None`` for a job with one process.
        processes: the other ranks, from 1.
    """

    rank = 0

    def __init__(
        self, group: Group | None = None, processes: Sequence[subprocess.Popen[bytes]] = ()
    ) -> None:
        self._group, self._processes = group, list(processes)
        self._frozen: dict[str, Any] = {}

    @property
    def size(self) -> int:
        """How many processes there are."""
        return 1 if self._group is None else self._group.size

    @classmethod
    @contextlib.contextmanager
    def start(cls, spec: TrainSpec, job_dir: Path) -> Iterator["Team"]:
        """Start the other processes of a job that trains with several; they end with the context.

        Raises:
            RankLost: one of them ended before it could be used.
        """
        if spec.processes == 1 or (spec.method.type == "reinforcement" and spec.method.dry_run):
            yield cls()
            return
        with tempfile.TemporaryDirectory(prefix="team-", dir=job_dir) as folder:
            started: list[subprocess.Popen[bytes]] = []
            try:
                for rank in range(1, spec.processes):
                    started.append(_start_rank(job_dir, rank, Path(folder) / "store"))
                _await_ranks(started, Path(folder) / "store", spec.processes)
                group = Group(Path(folder) / "store", rank=0, size=spec.processes)
                yield cls(group, started)
            finally:
                # They hold nothing that could be lost.
                for process in started:
                    process.kill()
                    process.wait()

    def accumulate(
        self, part: Part[Item, Result], models: Mapping[str, Any], items: Sequence[Item]
    ) -> list[Result]:
        """Run ``part(models, item)`` for every item somewhere, and add up the gradients here.

        Args:
            part: adds gradients to the masters of ``models``, and returns figures; on another rank
                it gets that rank's copies. Items and results travel as pickles.
            models: by name, each a :class:`Policy`: ``policy``, and with it ``reference`` or
                ``critic`` where ``part`` needs them.

        Returns:
            The results in the order of the items.

        Raises:
            RankLost: a process ended.
            Exception: what ``part`` raised on any rank; gradients are then unusable.
        """
        results = self._run(part, models, items, sums=True)
        if self._group is not None:
            with self._translated():
                sum_gradients(self._group, models)
        return results

    def map(
        self, part: Part[Item, Result], models: Mapping[str, Any], items: Sequence[Item]
    ) -> list[Result]:
        """Like :meth:`accumulate` for a ``part`` that leaves no gradients."""
        return self._run(part, models, items, sums=False)

    def _run(
        self,
        part: Part[Item, Result],
        models: Mapping[str, Any],
        items: Sequence[Item],
        *,
        sums: bool,
    ) -> list[Result]:
        group = self._group
        if group is None:
            return [part(models, item) for item in items]
        sent = {name: model for name, model in models.items() if self._frozen.get(name) != model}
        with self._translated():
            group.broadcast(Request(part, list(items), list(models), list(sent), sums))
            for model in sent.values():
                group.send_tensors(weights(model, models["policy"]))
        self._frozen |= {name: model for name, model in sent.items() if not model.trainable}
        mine = run_share(part, models, share(items, group))
        with self._translated():
            everyone = group.gather(mine)
        failed = [outcome for outcome in everyone if isinstance(outcome, Exception)]
        if failed:
            raise failed[0]
        results: list[Any] = [None] * len(items)
        for rank, outcome in enumerate(everyone):
            results[rank :: group.size] = outcome
        return results

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GroupBroken as error:
            raise _lost(self._processes) from error


@dataclass(frozen=True)
class Request:
    """What the leader wants done: ``part`` on ``items`` with ``models``.

    The weights of the models in ``sent`` follow; with ``sums`` gradients are added up at the end.
    """

    part: Part[Any, Any]
    items: list[Any]
    models: list[str]
    sent: list[str]
    sums: bool


def share(items: Sequence[Item], group: Group) -> list[Item]:
    """The items of this rank: every ``size``-th, so that items sorted by length are spread."""
    return list(items[group.rank :: group.size])


def run_share(
    part: Part[Item, Result], models: Mapping[str, Any], items: Sequence[Item]
) -> list[Result] | Exception:
    """Results of this rank's items, or what kept it from having them."""
    try:
        return [part(models, item) for item in items]
    except Exception as error:
        # The other ranks wait for an answer, and the leader raises it. Frames are told, not kept:
        # they hold the tensors of a pass that may have run out of memory.
        error.add_note(f"in process {os.getpid()}:\n{traceback.format_exc()}")
        return error.with_traceback(None)


def weights(model: Any, policy: Any) -> list[torch.Tensor]:
    """What sets a model apart from a fresh copy: what it trains, or what the policy does."""
    parameters = dict(model.model.named_parameters())
    return [parameters[name].data for name in model.trainable or policy.trainable]


def sum_gradients(group: Group, models: Mapping[str, Any]) -> None:
    """Add up, over the ranks, what each has in its masters; a frozen model has none."""
    for model in models.values():
        group.sum_tensors([master.grad for master in model.masters.values()])


def threads_per_rank(spec: TrainSpec) -> int:
    """CPU threads of one rank, so that all of them together use what the job may use."""
    threads = spec.threads or len(os.sched_getaffinity(0))
    return max(1, threads // spec.processes)


def _start_rank(job_dir: Path, rank: int, store: Path) -> subprocess.Popen[bytes]:
    where = [str(job_dir), str(rank), str(store), str(os.getpid())]
    command = [sys.executable, "-m", "trainer.follower", *where]
    # Standard output may be where this process reports, which nobody else must write to.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2)


def _await_ranks(processes: list[subprocess.Popen[bytes]], store: Path, size: int) -> None:
    keys = [f"ready-{rank}" for rank in range(1, size)]
    opened = open_store(store, size)
    until = time.monotonic() + START_S
    while not opened.check(keys):
        if any(process.poll() is not None for process in processes):
            raise _lost(processes)
        if time.monotonic() > until:
            raise RankLost(f"The other processes of the team did not start within {START_S:g} s.")
        time.sleep(0.05)


def _lost(processes: list[subprocess.Popen[bytes]]) -> RankLost:
    until = time.monotonic() + 5
    while all(process.poll() is None for process in processes) and time.monotonic() < until:
        time.sleep(0.05)
    ended = [
        f"process {rank} ended with code {process.returncode}"
        for rank, process in enumerate(processes, start=1)
        if process.returncode is not None
    ]
    return RankLost(
        f"The team that shares the updates is broken: {', '.join(ended) or 'one does not answer'}. "
        "Its last words are in the trainer's log; memory may be used up."
    )

"""Processes of one machine that exchange objects and tensors.

Without torch's default process group, which is global to a process and which the sampler sets up
for itself. Objects travel over loopback; tensors too, or by NCCL where every rank has a GPU.
"""

import datetime
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed import (
    AllreduceOptions,
    BroadcastOptions,
    FileStore,
    PrefixStore,
    ProcessGroup,
    Store,
)
from torch.distributed.distributed_c10d import ProcessGroupGloo

#: A rank may wait for long while the leader samples; one that ends is noticed at once.
_PATIENCE = datetime.timedelta(days=30)


class GroupBroken(ConnectionError):
    """Another rank is gone."""


class Group:
    """One rank's connection to all of them; every method is called by all ranks together.

    Args:
        path: of the file that ranks find each other by.
    """

    def __init__(self, path: Path, *, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        store = open_store(path, size)
        store.set(f"ready-{rank}", "")
        options = ProcessGroupGloo._Options()
        options._devices = [ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        options._timeout = _PATIENCE
        self._objects: Any = ProcessGroupGloo(PrefixStore("objects", store), rank, size, options)
        self._tensors: Any = self._objects
        if torch.cuda.device_count() >= size:
            self._tensors = _nccl(PrefixStore("tensors", store), rank, size)

    def broadcast(self, value: Any = None) -> Any:
        """Hand rank 0's value to everyone.

        Raises:
            GroupBroken: a rank is gone.
        """
        data = _packed(value) if self.rank == 0 else b""
        length = torch.tensor([len(data)])
        self._from_leader(self._objects, length)
        buffer = torch.empty(int(length), dtype=torch.uint8)
        if self.rank == 0:
            buffer.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        self._from_leader(self._objects, buffer)
        return value if self.rank == 0 else pickle.loads(bytes(buffer.numpy()))

    def gather(self, value: Any) -> list[Any]:
        """Everyone's value, in the order of the ranks, at every rank.

        Raises:
            GroupBroken: a rank is gone.
        """
        data = _packed(value)
        lengths = torch.zeros(self.size, dtype=torch.long)
        lengths[self.rank] = len(data)
        self._summed(self._objects, lengths)
        row = torch.zeros(self.size, int(lengths.max()), dtype=torch.uint8)
        row[self.rank, : len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        self._summed(self._objects, row)
        return [
            pickle.loads(bytes(row[rank, : int(length)].numpy()))
            for rank, length in enumerate(lengths)
        ]

    def send_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite every other rank's tensors with rank 0's, which have the same shapes.

        Raises:
            GroupBroken: a rank is gone.
        """
        for tensor in tensors:
            self._from_leader(self._tensors, tensor)

    def sum_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Replace every rank's tensors by the sum over the ranks, the same bits at each.

        Raises:
            GroupBroken: a rank is gone.
        """
        for tensor in tensors:
            self._summed(self._tensors, tensor)

    def _from_leader(self, group: ProcessGroup, tensor: Tensor) -> None:
        options = BroadcastOptions()
        options.rootRank = 0
        try:
            group.broadcast([tensor], options).wait()
        except RuntimeError as error:
            raise GroupBroken(str(error)) from error

    def _summed(self, group: ProcessGroup, tensor: Tensor) -> None:
        try:
            group.allreduce([tensor], AllreduceOptions()).wait()
        except RuntimeError as error:
            raise GroupBroken(str(error)) from error


def open_store(path: Path, size: int) -> Store:
    """Where ranks find each other."""
    return FileStore(str(path), size)


def _packed(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        if isinstance(value, Exception):
            return pickle.dumps(RuntimeError(repr(value)))
        raise


def _nccl(store: Store, rank: int, size: int) -> Any:
    from torch.distributed.distributed_c10d import ProcessGroupNCCL

    return ProcessGroupNCCL(store, rank, size, ProcessGroupNCCL.Options())

"""Adapters as full weights, for machines on which vLLM's adapter kernels are too slow.

On a CPU those kernels read a prompt some fifty times slower than the matrices they adapt.
"""

import sys
from pathlib import Path

from core.process.child import Child, ChildSpec, describe_exit
from workers.serving.engine import EngineFailed, server_environment

#: The command that takes BASE, ADAPTER and OUT. A process of its own: serving never imports torch.
EXPORT = (sys.executable, "-m", "trainer.export")


def merge(base: Path, adapter: Path, out: Path, *, log: Path) -> None:
    """Write the base model with the adapter folded in to `out`, which must not exist.

    Raises:
        EngineFailed: the command fails; the log says why.
    """
    command = (*EXPORT, str(base), str(adapter), str(out))
    child = Child(ChildSpec(name="merge", command=command, env=server_environment()), log)
    child.start()
    child.wait()
    if code := child.exit_code():
        raise EngineFailed(f"Merging {adapter.name} {describe_exit(code)}; {log} says why.")

"""The environment that holds what is compared with: TRL, and the tasks of reasoning-gym."""

from bench.machine import ROOT

#: Made by `make trl`.
COMPARISON = ROOT / ".venv-trl" / "bin" / "python"


class EnvironmentMissing(FileNotFoundError):
    """The environment for comparisons is not there."""


def comparison_python() -> str:
    """The interpreter that has TRL.

    Raises:
        EnvironmentMissing: it is not installed.
    """
    if not COMPARISON.exists():
        raise EnvironmentMissing(f"{COMPARISON} is missing. Make it with `make trl`.")
    return str(COMPARISON)

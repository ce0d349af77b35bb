"""On which machine and commit figures were measured, as a line of the page."""

from collections.abc import Sequence
from typing import Any


def measured_on(entries: Sequence[dict[str, Any]]) -> str:
    """Machine, commits and days of measured entries, as one line."""
    machines = list(dict.fromkeys(_machine(entry["machine"]) for entry in entries))
    commits = list(dict.fromkeys(entry["commit"] for entry in entries))
    days = sorted({entry["at"][:10] for entry in entries if "at" in entry})
    when = f", {days[0]}" if len(days) == 1 else f", {days[0]} to {days[-1]}" if days else ""
    shown = ", ".join(f"`{commit}`" for commit in commits)
    return f"Measured on {'; '.join(machines)}{when}, at {shown}."


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, "
        f"Python {machine['python']}"
    )

"""The dry run that a job names: whether it speaks for the job, and what it says."""

from dataclasses import dataclass, field
from typing import Any, Literal

from core.dry_runs import differences
from core.models import File, Job
from trainer.limits import PROBE_GROUPS, REFUSE_SHARE
from workers.context import Context
from workers.refused import Refused

_PARAM = "method.reinforcement.dry_run"

SpreadCheck = Literal["refuse", "warn", "off"]


@dataclass(frozen=True)
class FirstLook:
    """How a job looks at its first groups, and what its user should know of its dry run."""

    spread_check: SpreadCheck
    warnings: list[str] = field(default_factory=list)


def first_look(context: Context, job: Job, method: dict[str, Any]) -> FirstLook:
    """Decide whether a job with this resolved method looks at its first groups itself.

    Raises:
        Refused: its dry run found hardly any group with spread.
    """
    block = method["reinforcement"]
    own: SpreadCheck = "warn" if block.get("allow_no_spread") else "refuse"
    name = block.get("dry_run")
    if name is None:
        return FirstLook(own)
    with context.sessions() as session:
        dry_run = session.get_one(Job, name)
    different = _differences(context, job, method, dry_run)
    if different:
        said = (
            f"Dry run {name} is of another {' and '.join(different)}; the job looks at its first "
            "groups itself."
        )
        return FirstLook(own, [said])
    if block.get("warm_start") is not None:
        said = (
            f"Dry run {name} shows the model before the warm start; the job looks again after it."
        )
        return FirstLook(own, [said])
    report = dry_run.report or {}
    groups = report["groups"]
    if groups["share_without_spread"] < REFUSE_SHARE or own == "warn":
        return FirstLook("off")
    if groups["total"] < PROBE_GROUPS:
        said = f"Dry run {name} saw {groups['total']} groups only; the job looks at more of them."
        return FirstLook(own, [said])
    raise _without_spread(name, report)


def _differences(context: Context, job: Job, method: dict[str, Any], dry_run: Job) -> list[str]:
    with context.sessions() as session:
        files = [session.get(File, row.training_file) for row in (job, dry_run)]
    contents = [None if file is None else file.sha256 for file in files]
    found = []
    if (job.model, job.init_from) != (dry_run.model, dry_run.init_from):
        found.append("model")
    if contents[0] != contents[1]:
        found.append("training file")
    return found + differences(method, dry_run.method)


def _without_spread(name: str, report: dict[str, Any]) -> Refused:
    verdict = report["verdict"]
    return Refused(
        f"Dry run {name} found: {verdict['message']} {' '.join(verdict['advice'])} To train "
        "anyway, set method.reinforcement.allow_no_spread to true.",
        code="no_spread",
        param=_PARAM,
        data={"groups": report["groups"]},
    )

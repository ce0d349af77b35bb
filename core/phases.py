"""The phases of a job, and which of its rows lie beyond a point in them."""

from sqlalchemy import ColumnElement, and_, or_

from core.models import EvalRun, Event, Metric

#: How far each phase lies along a job; evaluations between steps belong to the steps.
PLACE = {
    "loading": 0,
    "base_evaluation": 1,
    "warm_start": 2,
    "warm_start_evaluation": 3,
    "reference": 3,
    "rl": 4,
    "supervised": 4,
    "dpo": 4,
    "dry_run": 4,
    "step_evaluation": 4,
    "final_evaluation": 5,
    "export": 6,
}

#: The phase whose steps are a job's own, by the type of its method.
STEPS_OF = {"reinforcement": "rl", "supervised": "supervised", "dpo": "dpo"}


def beyond(
    table: type[Metric] | type[Event] | type[EvalRun], phase: str, step: int
) -> ColumnElement[bool]:
    """Return the condition that a row lies past a step of a phase."""
    same = and_(table.phase.in_(beside(phase)), table.step > step)
    return or_(table.phase.in_(later(phase)), same)


def later(phase: str) -> list[str]:
    """Return the phases after this one."""
    return [name for name, place in PLACE.items() if place > PLACE[phase]]


def beside(phase: str) -> list[str]:
    """Return this phase and those that run together with it."""
    return [name for name, place in PLACE.items() if place == PLACE[phase]]

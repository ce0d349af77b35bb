"""Graders: what turns a model's completion into a score, an abstention or a failure.

A pure library: no database, no HTTP server, no torch.
"""

from graders.client import GraderClient, GraderProcess, Reply, start_grader_process
from graders.engine import Engine, Graded
from graders.errors import GraderError, GraderProcessError, SpecError, SpecProblem, WireError
from graders.outcome import KINDS, Abstain, Failure, Note, Outcome, Score, from_wire, to_wire
from graders.spec import (
    GRADERS,
    GraderSpec,
    RowProblem,
    check_rows,
    item_of,
    parse_grader,
    variables,
    warnings,
)

__all__ = [
    "GRADERS",
    "KINDS",
    "Abstain",
    "Engine",
    "Failure",
    "Graded",
    "GraderClient",
    "GraderError",
    "GraderProcess",
    "GraderProcessError",
    "GraderSpec",
    "Note",
    "Outcome",
    "Reply",
    "RowProblem",
    "Score",
    "SpecError",
    "SpecProblem",
    "WireError",
    "check_rows",
    "from_wire",
    "item_of",
    "parse_grader",
    "start_grader_process",
    "to_wire",
    "variables",
    "warnings",
]

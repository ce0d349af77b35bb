"""Dataset files: JSON Lines with one row per line, and the one validator for all of them."""

from rft.dataset.checks import FieldCheck, LengthCheck, RowCheck, examine
from rft.dataset.messages import Kind
from rft.dataset.overlap import OverlapReport, find_overlap
from rft.dataset.report import VERSION, Finding, Problem, Report
from rft.dataset.rows import DatasetError, iter_placed_rows, iter_rows
from rft.dataset.rules import RULES, Rule
from rft.dataset.validator import ALIASES, KINDS, Validator, kind_named, kind_of, validate

__all__ = [
    "ALIASES",
    "KINDS",
    "RULES",
    "VERSION",
    "DatasetError",
    "FieldCheck",
    "Finding",
    "Kind",
    "LengthCheck",
    "OverlapReport",
    "Problem",
    "Report",
    "RowCheck",
    "Rule",
    "Validator",
    "examine",
    "find_overlap",
    "iter_placed_rows",
    "iter_rows",
    "kind_named",
    "kind_of",
    "validate",
]

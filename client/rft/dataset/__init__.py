"""Dataset files: JSON Lines with one row per line, and the one validator for all of them."""

from rft.dataset.conversation import Kind
from rft.dataset.report import Problem, Report
from rft.dataset.rows import DatasetError, iter_rows
from rft.dataset.rules import RULES, Rule
from rft.dataset.validator import KINDS, validate

__all__ = [
    "KINDS",
    "RULES",
    "DatasetError",
    "Kind",
    "Problem",
    "Report",
    "Rule",
    "iter_rows",
    "validate",
]

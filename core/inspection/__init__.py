"""Inspection of training files while they arrive: which kind of rows, and what is wrong with them.

The rules are those of `rft.dataset`. A large file is read in a process of its own, so that it costs
the API neither its interpreter nor its memory.
"""

from core.inspection.apart import InspectionFailed, TooSlowToRead, inspect_here, inspect_stored
from core.inspection.inspection import Inspection
from core.inspection.refusal import cannot_be_rows, refusal_of

__all__ = [
    "Inspection",
    "InspectionFailed",
    "TooSlowToRead",
    "cannot_be_rows",
    "inspect_here",
    "inspect_stored",
    "refusal_of",
]

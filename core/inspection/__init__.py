"""Inspection of training files while they arrive: which kind of rows, and what is wrong with them.

The rules are those of `rft.dataset`. A large file is read in a process of its own, so that it costs
the API neither its interpreter nor its memory.
"""

from core.inspection.inspection import Inspection, InspectionFailed, inspect_bytes
from core.inspection.refusal import refusal_of

__all__ = ["Inspection", "InspectionFailed", "inspect_bytes", "refusal_of"]

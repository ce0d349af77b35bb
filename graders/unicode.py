"""Bringing a text to a Unicode form, in bounded time.

Marks that follow each other without a base character are sorted, and that takes time quadratic in
their number: a text of nothing else could stall a grader for minutes.
"""

import functools
import re
import sys
import unicodedata
from typing import Literal, TypeAlias

from graders.errors import GradeError

Form: TypeAlias = Literal["NFC", "NFKC"]

#: Longest text beyond ASCII, in characters.
MAX_CHARS = 400_000
#: Most combining characters in a row; no language needs more than a few.
MAX_RUN = 1_000


def normalized(form: Form, text: str) -> str:
    """The text in this form; raises `GradeError` when it is too long, or too many marks follow."""
    if text.isascii():
        return text
    if len(text) > MAX_CHARS:
        detail = f"A text to normalise may hold {MAX_CHARS:,} characters, not {len(text):,}."
        raise GradeError("other_error", detail)
    if any(run.end() - run.start() > MAX_RUN for run in _marks().finditer(text)):
        detail = f"A text may hold {MAX_RUN:,} combining characters in a row."
        raise GradeError("other_error", detail)
    return unicodedata.normalize(form, text)


@functools.cache
def _marks() -> re.Pattern[str]:
    """Runs of what is, or falls apart into, characters that are sorted."""
    found = [chr(code) for code in range(sys.maxunicode + 1) if _sorts(chr(code))]
    return re.compile(f"[{re.escape(''.join(found))}]+")


def _sorts(character: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0

"""Cutting texts into words, for any script.

`words` is what ROUGE counts: lower-case letters and digits. `tokens` is what BLEU counts: words
and punctuation, by the rules of WMT's mteval-v13a. On ASCII both are what rouge-score and
sacrebleu make. Those know no other alphabet, so here further letters belong to words, and the
characters of scripts that put no spaces between words (Chinese, Japanese, Thai…) stand alone.
"""

import functools
import re
import unicodedata

from graders.metrics import TooLongError
from graders.unicode import normalized

#: Most words or tokens of one text.
MAX_TOKENS = 100_000

_ASCII_WORD = re.compile(r"[a-z0-9]+")
#: Han, kana, Thai, Lao, Tibetan, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
#: Where combining marks are; the planes above hold variation selectors at most.
_MARKS = range(0x300, 0x1F000)

#: mteval-v13a: ASCII punctuation stands alone, but for apostrophes and what numbers are made of.
_ALONE = re.compile(r"([!-&(-+/:-@\[-`{-~])")
_POINT_AFTER_OTHER = re.compile(r"([^0-9])([.,])")
_POINT_BEFORE_OTHER = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation; raises `TooLongError`.

    Like `tokens` it raises `GradeError` for a text that cannot be normalised (see
    `graders.unicode`).
    """
    lowered = text.lower()
    if lowered.isascii():
        return _bounded(_ASCII_WORD.findall(lowered))
    return _bounded(_patterns()[0].findall(normalized("NFC", lowered)))


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text as they are; raises `TooLongError`."""
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        line = line.replace(entity, character)
    if not line.isascii():
        line = _patterns()[1].sub(r" \g<0> ", normalized("NFC", line))
    line = _ALONE.sub(r" \1 ", f" {line} ")
    line = _POINT_AFTER_OTHER.sub(r"\1 \2 ", line)
    line = _POINT_BEFORE_OTHER.sub(r" \1 \2", line)
    return _bounded(_DASH_AFTER_DIGIT.sub(r"\1 \2 ", line).split())


def prepare() -> None:
    """Make what texts beyond ASCII need, which takes a moment: once, and not in a grade."""
    _patterns()
    normalized("NFC", "é")


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Words of any script, and single characters of unspaced ones, with their combining marks."""
    # Python's \w leaves out combining marks, and without them Hindi words fall apart.
    marks = "".join(c for c in map(chr, _MARKS) if unicodedata.category(c)[0] == "M")
    single = f"[{_UNSPACED}][{marks}]*"
    spaced = f"(?:(?![{_UNSPACED}])[^\\W_])(?:(?![{_UNSPACED}])[^\\W_]|[{marks}])*"
    return re.compile(f"{spaced}|(?:(?=[^\\W_]){single})"), re.compile(single)


def _bounded(found: list[str]) -> list[str]:
    if len(found) > MAX_TOKENS:
        raise TooLongError(f"a text may hold {MAX_TOKENS:,} words, not {len(found):,}")
    return found

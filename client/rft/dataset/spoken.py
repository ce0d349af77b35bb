"""What is said in a row, as words to compare."""

import re
import unicodedata
from typing import Any

from rft.dataset.parts import text_of

#: What is compared of a longer row, in characters: its beginning.
MAX_CHARACTERS = 200_000

#: Normalising takes quadratic time in a run of combining marks, so it is done in pieces.
_PIECE = 256

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: Signs that change what a sum or a line of code means; some mean that only between operands.
_SIGNS = r"[+=<>%±×÷−√≤≥≠$€£¥]|[-*/^](?=\s?\d)|(?<=\s)[-*/^](?=\s\w)"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+(?:[.,]\d+)*|{_SIGNS}")


def words_of(row: dict[str, Any]) -> list[str]:
    """The words that anyone but the system says, without case, punctuation and compatibility forms.

    Each Chinese, Japanese or Korean character is a word, and so is a sign of arithmetic. The
    messages are the row's, or those of a preference's input.
    """
    given = row.get("input")
    holder = given if "messages" not in row and isinstance(given, dict) else row
    messages = holder.get("messages")
    said = [
        text_of(message.get("content"))
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and message.get("role") not in ("system", "developer")
    ]
    return _WORD.findall(_normal("\n".join(said)[:MAX_CHARACTERS]).casefold())


def _normal(text: str) -> str:
    if text.isascii():
        return text
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)

"""Rows of a validation file that also stand in the training file, exactly or nearly.

Exactly: the messages are the same (see `fingerprint`). Nearly: of what is said by anyone but the
system, at least `NEAR` of the shingles are shared (their Jaccard similarity). A shingle is a run of
five words, or all words of a shorter text; words are compared without case, punctuation and
compatibility forms, and each Chinese, Japanese or Korean character is a word. Shingles that many
validation rows have are the prompt's template and do not count.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rft.dataset.fingerprint import fingerprint
from rft.dataset.parts import text_of
from rft.dataset.rows import PlacedRow

#: Smallest share of shingles in common that makes two rows nearly the same.
NEAR = 0.8

#: Words in a shingle.
WORDS = 5

#: A shingle in more validation rows than a tenth, but at least 3 and at most 20, is template.
_FEWEST_TEMPLATE_ROWS, _MOST_TEMPLATE_ROWS = 3, 20

#: Most shingles that are kept, about 100 bytes each; of more, a fixed share is compared.
MAX_SHINGLES = 500_000

#: Most pairs that a report lists.
MAX_PAIRS = 100

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


@dataclass(frozen=True)
class Pair:
    """A validation row and the training row that says the same; `similarity` is 1 when exactly."""

    validation_line: int
    training_line: int
    similarity: float


@dataclass(frozen=True)
class OverlapReport:
    """How many validation rows stand in the training file, exactly and nearly, and the first."""

    validation_rows: int
    exact: int
    near: int
    pairs: tuple[Pair, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "validation_rows": self.validation_rows,
            "exact": self.exact,
            "near": self.near,
            "pairs": [asdict(pair) for pair in self.pairs],
        }


def find_overlap(validation: Iterable[PlacedRow], training: Iterable[PlacedRow]) -> OverlapReport:
    """Compare two files. The validation rows are indexed in memory, the training rows stream by."""
    index = _Index(validation)
    best: dict[int, Pair] = {}
    for line, _, row in training:
        for number, similarity in index.like(row):
            pair = Pair(index.lines[number], line, similarity)
            if number not in best or similarity > best[number].similarity:
                best[number] = pair
    found = sorted(best.values(), key=lambda pair: pair.validation_line)
    exact = sum(pair.similarity == 1 for pair in found)
    pairs = tuple(found[:MAX_PAIRS])
    return OverlapReport(len(index.lines), exact, len(found) - exact, pairs)


class _Index:
    """The validation rows, by what they say and by their shingles; rows are numbered from 0."""

    def __init__(self, rows: Iterable[PlacedRow]) -> None:
        self.lines: list[int] = []
        self._exact: dict[int, list[int]] = {}
        self._holders: dict[int, list[int]] = {}
        # Only shingles whose hash has none of these bits are compared.
        self._mask = 0
        for line, _, row in rows:
            self._add(row)
            self.lines.append(line)
        most = max(_FEWEST_TEMPLATE_ROWS, min(len(self.lines) // 10, _MOST_TEMPLATE_ROWS))
        self._template = {hash_ for hash_, rows in self._holders.items() if len(rows) > most}
        for shingle in self._template:
            del self._holders[shingle]
        self._sizes = Counter(number for rows in self._holders.values() for number in rows)

    def like(self, row: dict[str, Any]) -> Iterator[tuple[int, float]]:
        """The numbers of the rows like this one, and how similar they are."""
        same = self._exact.get(fingerprint(row) or 0, [])
        for number in same:
            yield number, 1.0
        shingles = self._shingles(row) - self._template
        shared = Counter(number for s in shingles for number in self._holders.get(s, ()))
        for number, count in shared.items():
            similarity = count / (len(shingles) + self._sizes[number] - count)
            if similarity >= NEAR and number not in same:
                # Words alone may be equal where the rows are not.
                yield number, min(similarity, 0.999)

    def _add(self, row: dict[str, Any]) -> None:
        number = len(self.lines)
        self._exact.setdefault(fingerprint(row) or 0, []).append(number)
        for shingle in self._shingles(row):
            self._holders.setdefault(shingle, []).append(number)
        while len(self._holders) > MAX_SHINGLES:
            self._mask = 2 * self._mask + 1
            kept = {s: rows for s, rows in self._holders.items() if not s & self._mask}
            self._holders = kept

    def _shingles(self, row: dict[str, Any]) -> set[int]:
        words = _words(row)
        runs = zip(*(words[start:] for start in range(WORDS)), strict=False)
        hashes = set(map(hash, runs)) if len(words) >= WORDS else {hash(tuple(words))}
        return {s for s in hashes if not s & self._mask} if self._mask else hashes


def _words(row: dict[str, Any]) -> list[str]:
    messages = row.get("messages")
    said = [
        text_of(message.get("content"))
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and message.get("role") not in ("system", "developer")
    ]
    return _WORD.findall(unicodedata.normalize("NFKC", "\n".join(said)).casefold())

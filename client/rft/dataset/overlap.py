"""Rows of a validation file that also stand in the training file, exactly or nearly.

Exactly: the messages are the same (see `fingerprint`). Nearly: what is said by anyone but the
system has the same words, or at least `NEAR` of its shingles are shared (their Jaccard similarity).
A shingle is a run of five words, or all words of a shorter text; see `spoken` for what a word is.
Shingles that many rows of one file have are the prompt's template and do not count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, NamedTuple

from rft.dataset.fingerprint import fingerprint
from rft.dataset.rows import PlacedRow
from rft.dataset.spoken import words_of

#: Smallest share of shingles in common that makes two rows nearly the same.
NEAR = 0.8

#: Words in a shingle.
WORDS = 5

#: A shingle in more validation rows than a tenth, but at least 3 and at most 20, is template; so is
#: one in more than 20 of the first training rows.
_FEWEST_TEMPLATE_ROWS, _MOST_TEMPLATE_ROWS = 3, 20

#: The first training rows, which tell the template: that many, or with that many shingles.
_FIRST_ROWS, _FIRST_SHINGLES = 5_000, 500_000

#: Most shingles that are kept, about 100 bytes each; of more, a fixed share is compared.
MAX_SHINGLES = 500_000

#: Most pairs that a report lists.
MAX_PAIRS = 100


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
    looks = map(index.look, training)
    first = index.learn_template(looks)
    best: dict[int, Pair] = {}
    for look in chain(first, looks):
        for number, similarity in index.like(look):
            if number not in best or similarity > best[number].similarity:
                best[number] = Pair(index.lines[number], look.line, similarity)
    found = sorted(best.values(), key=lambda pair: pair.validation_line)
    exact = sum(pair.similarity == 1 for pair in found)
    pairs = tuple(found[:MAX_PAIRS])
    return OverlapReport(len(index.lines), exact, len(found) - exact, pairs)


class _Look(NamedTuple):
    """A training row: what it says, its words, and those of its shingles that validation has."""

    line: int
    said: int | None
    words: int | None
    shingles: int
    shared: list[int]


class _Index:
    """The validation rows, by what they say and by their shingles; rows are numbered from 0."""

    def __init__(self, rows: Iterable[PlacedRow]) -> None:
        self.lines: list[int] = []
        self._exact: dict[int, list[int]] = {}
        self._worded: dict[int, list[int]] = {}
        self._holders: dict[int, list[int]] = {}
        # Only shingles whose hash has none of these bits are compared.
        self._mask = 0
        for line, _, row in rows:
            self._add(row)
            self.lines.append(line)
        most = max(_FEWEST_TEMPLATE_ROWS, min(len(self.lines) // 10, _MOST_TEMPLATE_ROWS))
        self._template: set[int] = set()
        self._forget({hash_ for hash_, rows in self._holders.items() if len(rows) > most})

    def learn_template(self, looks: Iterator[_Look]) -> list[_Look]:
        """Take the first training rows, which tell what else is template; returns them."""
        first: list[_Look] = []
        holders: Counter[int] = Counter()
        taken = 0
        for look in looks:
            first.append(look)
            holders.update(look.shared)
            taken += len(look.shared)
            if len(first) == _FIRST_ROWS or taken > _FIRST_SHINGLES:
                break
        self._forget({hash_ for hash_, rows in holders.items() if rows > _MOST_TEMPLATE_ROWS})
        return first

    def look(self, placed: PlacedRow) -> _Look:
        """Look at a training row."""
        words = words_of(placed.row)
        shingles = self._shingles(words) - self._template
        shared = [shingle for shingle in shingles if shingle in self._holders]
        said, same_words = fingerprint(placed.row), hash(tuple(words)) if words else None
        return _Look(placed.line, said, same_words, len(shingles), shared)

    def like(self, look: _Look) -> Iterator[tuple[int, float]]:
        """The numbers of the rows like this one, and how similar they are.

        Rows that say the same, or in the same words, are told of the first such training row only.
        """
        for number in self._exact.pop(look.said, ()) if look.said is not None else ():
            yield number, 1.0
        for number in self._worded.pop(look.words, ()) if look.words is not None else ():
            yield number, 0.999
        shared = [shingle for shingle in look.shared if shingle in self._holders]
        size = look.shingles - len(look.shared) + len(shared)
        for number, count in Counter(n for s in shared for n in self._holders[s]).items():
            similarity = count / (size + self._sizes[number] - count)
            if similarity >= NEAR:
                # Shingles alone may be equal where the rows are not.
                yield number, min(similarity, 0.998)

    def _add(self, row: dict[str, Any]) -> None:
        number, words, said = len(self.lines), words_of(row), fingerprint(row)
        if said is not None:
            self._exact.setdefault(said, []).append(number)
        if words:
            self._worded.setdefault(hash(tuple(words)), []).append(number)
        for shingle in self._shingles(words):
            holders = self._holders.setdefault(shingle, [])
            # One more tells that it is template, whose holders do not matter.
            if len(holders) <= _MOST_TEMPLATE_ROWS:
                holders.append(number)
        while len(self._holders) > MAX_SHINGLES:
            self._mask = 2 * self._mask + 1
            kept = {s: rows for s, rows in self._holders.items() if not s & self._mask}
            self._holders = kept

    def _forget(self, template: set[int]) -> None:
        for shingle in template:
            del self._holders[shingle]
        self._template |= template
        self._sizes = Counter(number for rows in self._holders.values() for number in rows)

    def _shingles(self, words: list[str]) -> set[int]:
        if not words:
            return set()
        runs = zip(*(words[start:] for start in range(WORDS)), strict=False)
        hashes = set(map(hash, runs)) if len(words) >= WORDS else {hash(tuple(words))}
        return {s for s in hashes if not s & self._mask} if self._mask else hashes

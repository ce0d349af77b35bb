"""Finding what stands twice in a long stream, in bounded memory."""

from array import array
from typing import NamedTuple

#: Most rows whose fingerprints are kept: 24 bytes each.
MAX_KEPT = 1 << 20

_BUCKETS = 256


class Repeat(NamedTuple):
    """A row that says the same as an earlier one, by line number from 1 and byte offset."""

    line: int
    offset: int
    earlier: int


class Seen:
    """Remembers fingerprints with their places.

    Past `limit` of them, half of all possible fingerprints is no longer looked at, then half of
    the rest, and so on: `share` says how many are. A repeat is found when both its rows have one
    that is looked at, and they always agree on that.
    """

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._kept = 0
        self._step = 1
        self._hashes = [array("q") for _ in range(_BUCKETS)]
        self._lines = [array("q") for _ in range(_BUCKETS)]
        self._offsets = [array("q") for _ in range(_BUCKETS)]

    @property
    def share(self) -> float:
        """The share of all fingerprints that is looked at, 1 for all but very long files."""
        return 1 / self._step

    def add(self, fingerprint: int, line: int, offset: int) -> None:
        """Remember one row."""
        bucket = fingerprint % _BUCKETS
        if bucket % self._step:
            return
        self._hashes[bucket].append(fingerprint)
        self._lines[bucket].append(line)
        self._offsets[bucket].append(offset)
        self._kept += 1
        if self._kept > self._limit and self._step < _BUCKETS:
            self._forget_half()

    def repeats(self) -> tuple[int, Repeat | None]:
        """How many rows repeat an earlier one, and the first of them."""
        count, earliest = 0, None
        for hashes, lines, offsets in zip(self._hashes, self._lines, self._offsets, strict=True):
            first: dict[int, int] = {}
            for fingerprint, line, offset in zip(hashes, lines, offsets, strict=True):
                earlier = first.setdefault(fingerprint, line)
                if earlier != line:
                    count += 1
                    repeat = Repeat(line, offset, earlier)
                    earliest = repeat if earliest is None else min(earliest, repeat)
        return count, earliest

    def _forget_half(self) -> None:
        self._step *= 2
        for bucket in range(_BUCKETS):
            if bucket % self._step:
                for kept in (self._hashes, self._lines, self._offsets):
                    kept[bucket] = array("q")
        self._kept = sum(map(len, self._hashes))

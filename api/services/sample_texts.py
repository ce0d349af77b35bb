"""The texts of samples, which lie in the rollout files of the object store.

Nothing here touches the database: rows are read before, so that no transaction waits for the store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.schemas.samples import Searched
from core.errors import NotFound, ObjectMissing
from core.models import Sample
from core.samples import Unreadable, parse_line, read_lines
from core.store import ObjectStore

#: How much one search for text reads at most before it gives a cursor to go on from.
MAX_SEARCHED = 2000
MAX_FILES = 50
MAX_BYTES = 256 * 2**20

_CHUNK = 1 << 16

#: Step and split, which name a rollout file.
Place = tuple[int, str]


class TextGone(NotFound):
    """The text of a sample is no longer stored, or cannot be read."""

    code = "sample_text_gone"

    def __init__(self, sample: Sample) -> None:
        super().__init__(
            f"The text of {sample.id} (step {sample.step}, {sample.split}) is no longer stored;"
            " what is known of it stands in the list of samples."
        )


@dataclass
class Texts:
    """Reads rollout files, each once, and keeps only the samples that are wanted of them."""

    store: ObjectStore
    keys: Mapping[Place, str]
    wanted: Mapping[Place, frozenset[int]]
    files: int = 0
    bytes: int = 0
    _read: dict[Place, dict[int, dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, store: ObjectStore, keys: Mapping[Place, str], samples: Iterable[Sample]
    ) -> "Texts":
        """Prepare to read the texts of `samples`, whose files lie under `keys`."""
        wanted: dict[Place, set[int]] = {}
        for sample in samples:
            wanted.setdefault((sample.step, sample.split), set()).add(sample.position)
        return cls(store, keys, {place: frozenset(found) for place, found in wanted.items()})

    def has_read(self, sample: Sample) -> bool:
        """Whether reading this sample opens no further file."""
        return (sample.step, sample.split) in self._read

    def get(self, sample: Sample) -> dict[str, Any]:
        """Return the sample as the trainer wrote it; raises TextGone and StorageError."""
        place = (sample.step, sample.split)
        if place not in self._read:
            self._read[place] = self._load(place)
        found = self._read[place].get(sample.position)
        if found is None:
            raise TextGone(sample)
        return found

    def _load(self, place: Place) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        if place not in self.keys:
            return found
        self.files += 1
        positions = self.wanted[place]
        last = max(positions)
        try:
            lines = read_lines(self.store.iter(self.keys[place], _CHUNK))
            for position, line in enumerate(lines):
                self.bytes += len(line)
                if position in positions:
                    found[position] = parse_line(line)
                if position >= last:
                    break
        except (ObjectMissing, Unreadable):
            return found  # what could be read; `get` says that the rest is gone
        return found


@dataclass(frozen=True)
class Found:
    """What a search for text found, and how far it looked."""

    samples: list[Sample]
    last: Sample | None
    searched: Searched


def search(texts: Texts, samples: list[Sample], text: str, *, limit: int, more: bool) -> Found:
    """Look for `text`, whatever its case, in the completions of `samples`, in order.

    It ends after `limit` finds or at one of the limits above; `more` says that further samples
    follow the given ones.
    """
    needle = text.casefold()
    found: list[Sample] = []
    looked = unreadable = 0
    for sample in samples:
        full = texts.files >= MAX_FILES or texts.bytes >= MAX_BYTES
        if len(found) >= limit or (full and not texts.has_read(sample)):
            break
        looked += 1
        try:
            if needle in texts.get(sample)["text"].casefold():
                found.append(sample)
        except TextGone:
            unreadable += 1
    return Found(
        samples=found,
        last=samples[looked - 1] if looked else None,
        searched=Searched(
            samples=looked,
            files=texts.files,
            unreadable=unreadable,
            complete=looked == len(samples) and not more,
        ),
    )

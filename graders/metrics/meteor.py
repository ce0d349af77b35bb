"""METEOR as nltk has it: words matched as they are, by their stem, then by WordNet's synonyms.

nltk downloads WordNet apart from its package. Where the corpus is not installed, the first two
stages run without the third, and `has_synonyms` is False.
"""

import functools
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from graders.metrics import TooLongError
from graders.metrics.tokens import tokens

#: Most tokens of one text: looking a new word up takes about 100 microseconds.
MAX_TOKENS = 5_000


class WordNet(Protocol):
    """The part of nltk's WordNet reader that METEOR asks."""

    def synsets(self, word: str) -> Sequence[Any]:
        """The senses of a word; each has `lemmas()`, and each of these a `name()`."""


class Meteor:
    """Computes METEOR scores; making one imports nltk, which takes a quarter of a second."""

    def __init__(self, wordnet: WordNet | None = None) -> None:
        """Use this WordNet, or the one that nltk finds, or none."""
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]
        from nltk.translate.meteor_score import (  # type: ignore[import-untyped]
            single_meteor_score,
        )

        found = wordnet or _installed_wordnet()
        self.has_synonyms = found is not None
        self._wordnet = _Remembered(found) if found else _NoWordNet()
        self._stemmer = _Stemmer(PorterStemmer())
        self._score = single_meteor_score

    def __call__(self, text: str, reference: str) -> float:
        """Score a text; raises `TooLongError`."""
        got, wanted = tokens(text), tokens(reference)
        longest = max(len(got), len(wanted))
        if longest > MAX_TOKENS:
            raise TooLongError(f"a text may hold {MAX_TOKENS:,} words for meteor, not {longest:,}")
        return float(self._score(wanted, got, stemmer=self._stemmer, wordnet=self._wordnet))


def _installed_wordnet() -> WordNet | None:
    from nltk.corpus import wordnet  # type: ignore[import-untyped]

    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError):
        # Not there, or only half of it, or where nltk may not read.
        return None
    found: WordNet = wordnet
    return found


class _NoWordNet:
    def synsets(self, word: str) -> list[Any]:
        return []


class _Remembered:
    """WordNet with its answers kept: a lookup takes about a hundred microseconds.

    Locked, as nltk reads from files that all threads share.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._lock = threading.Lock()
        self.synsets = functools.lru_cache(maxsize=50_000)(self._look_up)

    def _look_up(self, word: str) -> Sequence[Any]:
        with self._lock:
            return self._wordnet.synsets(word)


class _Stemmer:
    def __init__(self, stemmer: Any) -> None:
        self.stem = functools.lru_cache(maxsize=50_000)(stemmer.stem)

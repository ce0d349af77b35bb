"""Similarity by what two texts share: characters, n-grams, or words in the same order.

Numbers as in rapidfuzz (`fuzz.ratio`), sacrebleu (`sentence_bleu` as it comes), nltk
(`sentence_gleu`) and rouge-score (F-measure, no stemming). Every sum is over counts, so a shared
n-gram counts as often as it stands in both texts.
"""

import math
from collections import Counter

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from graders.metrics import TooLongError
from graders.metrics.tokens import tokens, words

#: Most pairs of characters to compare, each text's count times the other's: 100,000 by 100,000.
MAX_PAIRS = 10**10
#: The same where a character is beyond Latin-1, which is slower: 30,000 by 30,000.
MAX_WIDE_PAIRS = 9 * 10**8
#: Most pairs of words for the longest common subsequence: 50,000 by 50,000.
MAX_WORD_PAIRS = 25 * 10**8

_BLEU_ORDER = 4


def fuzzy(text: str, reference: str) -> float:
    """Twice the characters in common order over all characters; 1 for two empty texts."""
    narrow = max(text, default="") <= "\xff" and max(reference, default="") <= "\xff"
    limit = MAX_PAIRS if narrow else MAX_WIDE_PAIRS
    if len(text) * len(reference) > limit:
        sizes = f"{len(text):,} and {len(reference):,} characters"
        raise TooLongError(f"texts of {sizes} are too long for fuzzy_match")
    return float(fuzz.ratio(text, reference)) / 100


def bleu(text: str, reference: str) -> float:
    """Geometric mean of the precisions of 1- to 4-grams, times the penalty for being short.

    Orders that the text is too short for are left out; the k-th order without a match counts as
    1 / 2^k match (exponential smoothing). Without one shared token it is 0.
    """
    got, wanted = tokens(text), tokens(reference)
    logs: list[float] = []
    smoothing = 1.0
    for order in range(1, min(_BLEU_ORDER, len(got)) + 1):
        shared, total = _shared(got, wanted, order), len(got) - order + 1
        if shared == 0:
            if order == 1:
                return 0.0
            smoothing /= 2
        logs.append(math.log((shared or smoothing) / total))
    if not logs:
        return 0.0
    brevity = min(0.0, 1 - len(wanted) / len(got))
    return min(1.0, math.exp(brevity + sum(logs) / len(logs)))


def gleu(text: str, reference: str) -> float:
    """Shared 1- to 4-grams over all those of the text that has more; 0 without any token."""
    got, wanted = tokens(text), tokens(reference)
    orders = range(1, _BLEU_ORDER + 1)
    shared = sum(_shared(got, wanted, order) for order in orders)
    longest = max(len(got), len(wanted))
    total = sum(max(0, longest - order + 1) for order in orders)
    return shared / total if total else 0.0


def rouge_n(text: str, reference: str, *, order: int) -> float:
    """F-measure of the shared n-grams of words; 0 when a text has fewer than `order` words."""
    got, wanted = words(text), words(reference)
    counts = [max(0, len(found) - order + 1) for found in (got, wanted)]
    return _f_measure(_shared(got, wanted, order), *counts)


def rouge_l(text: str, reference: str) -> float:
    """F-measure of the longest common subsequence of words; 0 when a text has no word."""
    got, wanted = words(text), words(reference)
    if len(got) * len(wanted) > MAX_WORD_PAIRS:
        sizes = f"{len(got):,} and {len(wanted):,} words"
        raise TooLongError(f"texts of {sizes} are too long for rouge_l")
    return _f_measure(LCSseq.similarity(got, wanted), len(got), len(wanted))


def _shared(got: list[str], wanted: list[str], order: int) -> int:
    return (_ngrams(got, order) & _ngrams(wanted, order)).total()


def _ngrams(found: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(found[start:] for start in range(order)), strict=False))


def _f_measure(shared: int, got: int, wanted: int) -> float:
    # Precision is shared / got and recall shared / wanted; their harmonic mean is this.
    return 2 * shared / (got + wanted) if shared else 0.0

"""Rows of two files that say the same, exactly or nearly."""

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rft.dataset import overlap as module
from rft.dataset import spoken
from rft.dataset.overlap import NEAR, OverlapReport, find_overlap
from rft.dataset.rows import PlacedRow

from tests.properties import property_test

WORDS = [f"{a}{b}" for a in ("al", "be", "co", "du", "el") for b in ("ta", "ro", "mi", "ne", "su")]
TEXT = " ".join(random.Random(1).choices(WORDS, k=60))


def placed(*texts: str, system: str = "") -> list[PlacedRow]:
    return [PlacedRow(n, 0, row(text, system)) for n, text in enumerate(texts, start=1)]


def row(text: str, system: str = "") -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"messages": [{"role": "system", "content": system}, *messages] if system else messages}


def between(validation: str, training: str) -> OverlapReport:
    return find_overlap(placed("something else", validation), placed("another thing", training))


def test_the_same_messages_overlap_exactly() -> None:
    report = between(TEXT, TEXT)
    assert (report.validation_rows, report.exact, report.near) == (2, 1, 0)
    [pair] = report.pairs
    assert (pair.validation_line, pair.training_line, pair.similarity) == (2, 2, 1.0)


def test_order_of_fields_and_nulls_make_no_difference() -> None:
    other = {"messages": [{"content": TEXT, "name": None, "role": "user"}], "answer": 1}
    assert find_overlap(placed(TEXT), [PlacedRow(1, 0, other)]).exact == 1


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text.replace(" ", ",\n"),
        lambda text: f"“{text}!”",
        lambda text: text.replace(text.split()[30], "another", 1),
        lambda text: f"Please: {text}",
        lambda text: text.replace("al", "\uff41\uff4c"),
    ],
)
def test_small_changes_overlap_nearly(change: Any) -> None:
    report = between(TEXT, change(TEXT))
    assert (report.exact, report.near) == (0, 1)
    assert NEAR <= report.pairs[0].similarity < 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 12 plus 7?", "What is 13 plus 7?"),
        (TEXT, " ".join(reversed(TEXT.split()))),
        (TEXT, " ".join(TEXT.split()[:40])),
        ("", "q"),
        ("What is 12 + 7?", "What is 12 - 7?"),
        ("Is -5 odd?", "Is 5 odd?"),
        ("2*2", "2/2"),
        ("Is 3 < 4?", "Is 3 > 4?"),
        ("Add 1.5", "Add 1 5"),
        ("🙂", "🚀"),
    ],
)
def test_other_questions_do_not_overlap(one: str, other: str) -> None:
    report = between(one, other)
    assert (report.exact, report.near) == (0, 0)


def test_what_the_system_says_does_not_make_rows_alike() -> None:
    report = find_overlap(placed("one question", system=TEXT), placed("other thing", system=TEXT))
    assert (report.exact, report.near) == (0, 0)


def test_a_template_does_not_make_rows_alike() -> None:
    rows = [f"{TEXT} Now answer this: {' '.join(WORDS[n : n + 6])}" for n in range(0, 18, 3)]
    report = find_overlap(placed(*rows), placed(*map(str.upper, rows)))
    assert report.near == 6
    strangers = placed(*(f"{TEXT} Now answer this: {n} {n} {n} {n}" for n in range(6)))
    assert find_overlap(placed(*rows), strangers).near == 0


def test_languages_without_spaces_are_compared_by_characters() -> None:
    text = (
        "東京の天気は明日どうなりますか、傘を持って行くべきでしょうか教えてください。"
        "また、電車は何時に始まりますか、駅までの道も知りたいです"
    )
    assert between(text, text.replace("明日", "明後日") + "。").near == 1
    assert between(text, "大阪から京都まで電車で何分かかるか知りたいのですが").near == 0


def test_very_many_shingles_are_compared_by_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHINGLES", 300)
    draw = random.Random(2)
    texts = [" ".join(str(draw.randrange(10**6)) for _ in range(200)) for _ in range(8)]
    report = find_overlap(placed(*texts), placed(*(text + " more" for text in texts)))
    assert (report.exact, report.near) == (0, 8)


def test_one_row_may_stand_for_several() -> None:
    report = find_overlap(placed(TEXT, TEXT, TEXT.upper()), placed(TEXT))
    assert (report.exact, report.near) == (2, 1)


@property_test
@given(st.lists(st.text(max_size=30), max_size=6))
def test_every_file_overlaps_itself(texts: list[str]) -> None:
    report = find_overlap(placed(*texts), placed(*texts))
    assert (report.exact, report.near) == (len(texts), 0)


def test_what_the_training_rows_share_is_template_too() -> None:
    letters = [f"{TEXT} {' '.join(WORDS[n : n + 8])}." for n in (0, 8, 16)]
    others = [f"{TEXT} Parcel {n} is lost." for n in range(30)]
    assert find_overlap(placed(*letters), placed(*others)).near == 0
    report = find_overlap(placed(*letters), placed(*others, f"{letters[1]} Today"))
    assert [pair.validation_line for pair in report.pairs] == [2]


def test_the_same_words_overlap_nearly_however_many_rows_have_them() -> None:
    report = find_overlap(placed(*[TEXT.upper()] * 30), placed(TEXT))
    assert (report.exact, report.near) == (0, 30)


def test_inputs_of_preferences_are_compared() -> None:
    rows = [PlacedRow(1, 0, {"input": row(text)}) for text in (TEXT, TEXT.upper(), "another")]
    assert find_overlap(rows[:1], rows[:1]).exact == 1
    assert find_overlap(rows[:1], rows[1:2]).near == 1
    assert find_overlap(rows[:1], rows[2:]).near == 0


def test_equal_rows_are_matched_once() -> None:
    index = module._Index(placed(*[TEXT] * 100))
    looks = [index.look(each) for each in placed(*[TEXT] * 100)]
    assert sum(len(list(index.like(look))) for look in looks) == 200


def test_a_template_takes_no_memory_for_each_row() -> None:
    text = " ".join(str(n) for n in range(500))
    tracemalloc.start()
    module._Index(placed(*[text] * 300))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_long_texts_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def normalize(_form: str, piece: str) -> str:
        lengths.append(len(piece))
        return piece

    monkeypatch.setattr(spoken.unicodedata, "normalize", normalize)
    find_overlap(placed("a" + "\u0300\u0316" * 10**6), [])
    assert max(lengths) <= 256
    assert sum(lengths) <= spoken.MAX_CHARACTERS

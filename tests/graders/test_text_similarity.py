"""text_similarity: the numbers of the libraries that the field quotes, for any script."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fake_judge import Reply
from graders import Engine, Failure, Score, SpecError, parse_grader, warnings
from graders.errors import GradeError
from graders.metrics import TooLongError, overlap
from graders.metrics.meteor import Meteor
from graders.metrics.tokens import MAX_TOKENS, tokens, words
from graders.text_similarity import MAX_CHARS, TextSimilarity, _cosine, _meteor
from tests.graders.examples import grade
from tests.graders.hostile import few, graded, hostile
from tests.graders.judging import judged

#: What rapidfuzz 3.14, sacrebleu 2.6, nltk 3.10 (without WordNet) and rouge-score 0.1.2 say.
RECORDED = json.loads(Path(__file__).with_name("metric_values.json").read_text(encoding="utf-8"))
EXPECTED = [
    (metric, case["input"], case["reference"], value)
    for case in RECORDED
    for metric, value in case["values"].items()
]
LOCAL = [
    "fuzzy_match",
    "bleu",
    "gleu",
    "meteor",
    "rouge_1",
    "rouge_2",
    "rouge_3",
    "rouge_4",
    "rouge_5",
    "rouge_l",
]


def spec(metric: str, **changes: Any) -> dict[str, Any]:
    return {
        "type": "text_similarity",
        "name": "similar",
        "evaluation_metric": metric,
        "input": "{{sample.output_text}}",
        "reference": "{{item.answer}}",
    } | changes


def similarity(metric: str, text: str, reference: str) -> float:
    outcome = grade(spec(metric), text, {"answer": reference})
    assert isinstance(outcome, Score), outcome
    return outcome.value


def test_every_metric_of_the_spec_is_checked_here() -> None:
    field = TextSimilarity.model_fields["evaluation_metric"]
    assert {*LOCAL, "cosine"} == set(get_args(field.annotation))
    assert {metric for metric, *_ in EXPECTED} == set(LOCAL)


@pytest.mark.parametrize(("metric", "text", "reference", "value"), EXPECTED)
def test_values_of_the_libraries(
    metric: str, text: str, reference: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if metric == "meteor":
        monkeypatch.setattr("graders.metrics.meteor._installed_wordnet", lambda: None)
        assert Meteor()(text, reference) == pytest.approx(value, abs=1e-12)
        return
    assert similarity(metric, text, reference) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # 6 characters each, 3 in common order: c, a, t.
        ("fuzzy_match", 2 * 3 / (6 + 6)),
        # 1-grams 2 of 3; 2-grams 1 of 2; 3-grams none of 1, counted as half of one. As long.
        ("bleu", (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)),
        # 1- to 4-grams: 2 + 1 shared of 3 + 2 + 1.
        ("gleu", 3 / 6),
        # 2 of 3 words in one chunk: F is 2/3, the penalty half of (1/2)^3.
        ("meteor", 2 / 3 * (1 - 0.5 * 0.5**3)),
        ("rouge_1", 2 / 3),
        ("rouge_2", 1 / 2),
        ("rouge_3", 0),
        ("rouge_l", 2 / 3),
    ],
)
def test_values_by_hand(metric: str, value: float) -> None:
    pair = ("cat123", "xcat45") if metric == "fuzzy_match" else ("the red lamp", "the red door")
    assert similarity(metric, *pair) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("metric", LOCAL)
@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("東京は日本の首都です", "東京は日本の首都である"),
        ("Столица Франции — большой Париж", "Столица Франции — старый Париж"),
        ("भारत की राजधानी नई दिल्ली है", "भारत की राजधानी दिल्ली है"),
        ("سيعمل المصباح الجديد غدا", "سيعمل المصباح القديم غدا"),
        ("서울은 대한민국의 수도 입니다", "서울은 대한민국의 수도 였다"),
        ("กรุงเทพเป็นเมืองหลวง", "กรุงเทพคือเมืองหลวง"),
    ],
)
def test_other_scripts_are_similar_too(metric: str, text: str, reference: str) -> None:
    near, same = similarity(metric, text, reference), similarity(metric, text, text)
    if metric in ("rouge_4", "rouge_5") and len(words(text)) < 6:
        assert near < same or same == 0
        return
    assert 0 < near < same <= 1 or (metric in ("rouge_3", "rouge_4", "rouge_5") and near == 0)


def test_words_of_any_script() -> None:
    assert words("Naïve ÉCOLE, don't_x 10.5") == ["naïve", "école", "don", "t", "x", "10", "5"]
    assert words("東京は、2024年") == ["東", "京", "は", "2024", "年"]
    assert words("हिन्दी में") == ["हिन्दी", "में"]
    assert words("cafe\u0301") == words("caf\u00e9") == ["café"]
    assert tokens("Tokyo（東京）is 5%.") == ["Tokyo（", "東", "京", "）is", "5", "%", "."]


@pytest.mark.parametrize("metric", LOCAL)
def test_empty_texts(metric: str) -> None:
    assert similarity(metric, "", "") == (1 if metric == "fuzzy_match" else 0)
    assert similarity(metric, "", "the lamp") == 0
    assert similarity(metric, "the lamp", "") == 0


TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(["the", "Lamp", "lamps", "is", "red.", "5%", "東京", "é", "-", "\n", "&lt;"]),
    max_size=12,
).map(" ".join)
FUNCTIONS = {
    "fuzzy": overlap.fuzzy,
    "bleu": overlap.bleu,
    "gleu": overlap.gleu,
    "rouge_l": overlap.rouge_l,
    "rouge_2": lambda a, b: overlap.rouge_n(a, b, order=2),
    "meteor": lambda a, b: _meteor()(a, b),
}


@given(TEXTS, TEXTS)
@settings(deadline=None)
def test_range_symmetry_and_identity(text: str, reference: str) -> None:
    for name, metric in FUNCTIONS.items():
        value = metric(text, reference)
        assert 0 <= value <= 1, name
        if name not in ("bleu", "meteor"):
            assert value == metric(reference, text), name
    for name, parts in (("bleu", tokens), ("gleu", tokens), ("rouge_l", words)):
        assert FUNCTIONS[name](text, text) == pytest.approx(1.0 if parts(text) else 0.0), name
    assert overlap.fuzzy(text, text) == 1


def test_limits_are_failures_that_say_so() -> None:
    outcome = grade(spec("rouge_1"), "x" * (MAX_CHARS + 1), {"answer": "x"})
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("other_error", "grader")
    assert "400,000 characters, not 400,001" in outcome.detail
    with pytest.raises(TooLongError, match="100,000 words, not 100,001"):
        words("a " * (MAX_TOKENS + 1))
    with pytest.raises(TooLongError, match="fuzzy_match"):
        overlap.fuzzy("漢" * 40_000, "字" * 40_000)
    with pytest.raises(TooLongError, match="rouge_l"):
        overlap.rouge_l("a " * 60_000, "b " * 60_000)
    with pytest.raises(TooLongError, match="5,000 words for meteor"):
        _meteor()("a", "b " * 5_001)
    assert overlap.fuzzy("x" * 300_000, "x") > 0


class Lemma:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


class Synset:
    def lemmas(self) -> list[Lemma]:
        return [Lemma("quick"), Lemma("fast")]


class TinyWordNet:
    def synsets(self, word: str) -> list[Synset]:
        return [Synset()] if word in ("quick", "fast") else []


def test_meteor_uses_synonyms_where_wordnet_is() -> None:
    meteor = Meteor(TinyWordNet())
    assert meteor.has_synonyms
    # All 4 words in one chunk: half of (1/4)^3 is the whole penalty.
    assert meteor("the car is fast", "the car is quick") == pytest.approx(1 - 0.5 * 0.25**3)
    assert meteor("the car is slow", "the car is quick") < 0.8


def test_meteor_warns_without_synonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_meteor(), "has_synonyms", False)
    [warning] = warnings(parse_grader(spec("meteor")))
    assert "similar computes meteor without synonyms" in warning
    monkeypatch.setattr(_meteor(), "has_synonyms", True)
    assert warnings(parse_grader(spec("meteor"))) == []
    assert warnings(parse_grader(spec("rouge_l"))) == []


@pytest.mark.parametrize("metric", ["rouge", "ROUGE_L", "rouge_6", "rouge-l", "", 1])
def test_other_metrics_are_refused(metric: object) -> None:
    with pytest.raises(SpecError, match="'fuzzy_match'") as caught:
        parse_grader(spec("bleu", evaluation_metric=metric))
    assert caught.value.param == "evaluation_metric"


def test_openai_shape_is_kept() -> None:
    given = spec("fuzzy_match", pass_threshold=0.8)
    assert parse_grader(given).wire() == given


def test_cosine_is_that_of_the_vectors_of_the_operators_model() -> None:
    # The fake server counts the letters a and b first.
    graded, server = judged(spec("cosine"), [Reply()], "aab", {"answer": "abb"})
    assert isinstance(graded.outcome, Score)
    assert graded.outcome.value == pytest.approx(4 / 5)
    [seen] = server.requests
    assert seen.body["model"] == "text-embedding-3-large"
    assert sorted(seen.body["input"]) == ["aab", "abb"]
    assert graded.traces[0].model == "text-embedding-3-large"

    own = spec("cosine", embedding_model="mine")
    _, server = judged(own, [Reply()], "aab", {"answer": "abb"})
    assert server.requests[0].body["model"] == "mine"


@pytest.mark.parametrize(
    ("text", "reference", "score"), [("a", "a", 1), ("", "", 1), ("", "a", 0), ("a", "", 0)]
)
def test_cosine_asks_nobody_about_equal_and_empty_texts(
    text: str, reference: str, score: float
) -> None:
    graded, server = judged(spec("cosine"), [Reply()], text, {"answer": reference})
    assert graded.outcome == Score(score)
    assert server.requests == []


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([1.0, 0.0], [1.0, 1.0], math.sqrt(0.5)),
        ([1.0, 0.0], [-1.0, 0.1], 0),
        ([3e150, 4e150], [3e-150, 4e-150], 1),
        ([0.1] * 3072, [0.1] * 3072, 1),
    ],
)
def test_angles(first: list[float], second: list[float], value: float) -> None:
    found = _cosine(first, second)
    assert found == pytest.approx(value)
    assert 0 <= found <= 1


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [1.0, 2.0, 3.0], [math.inf, 1.0]])
def test_vectors_without_an_angle_are_a_failure(vector: list[float]) -> None:
    with pytest.raises(GradeError, match="no angle") as caught:
        _cosine([1.0, 0.0], vector)
    assert caught.value.kind == "model_grader_parse_error"


def test_cosine_without_an_endpoint_is_refused() -> None:
    with pytest.raises(SpecError, match="text-embedding-3-large") as caught:
        Engine(spec("cosine"))
    assert caught.value.param == "embedding_model"


def test_an_embedding_model_that_nothing_uses_is_refused() -> None:
    with pytest.raises(SpecError, match="Only cosine uses an embedding model") as caught:
        parse_grader(spec("bleu", embedding_model="mine"))
    assert caught.value.param == "embedding_model"


@few
@given(st.sampled_from(LOCAL), hostile, hostile)
def test_hostile_texts_are_compared_or_refused(metric: str, text: str, reference: str) -> None:
    graded(spec(metric), text, {"answer": reference})

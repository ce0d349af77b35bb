"""regex: RE2's syntax, said so; one pattern for all rows; groups compared with the row."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import Failure, Score, SpecError, parse_grader
from graders.patterns import MAX_CHARS
from tests.graders.examples import grade
from tests.graders.hostile import few, graded, hostile


def spec(pattern: Any, **changes: Any) -> dict[str, Any]:
    return {"type": "regex", "name": "form", "pattern": pattern} | changes


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found", "whole"),
    [
        ("[0-9]+", {}, "order 42", 1, 0),
        ("[0-9]+", {}, "42", 1, 1),
        ("a|ab", {}, "ab", 1, 1),
        ("^b$", {}, "a\nb\nc", 0, 0),
        ("^b$", {"multiline": True}, "a\nb\nc", 1, 0),
        ("a.c", {}, "a\nc", 0, 0),
        ("a.c", {"dot_all": True}, "a\nc", 1, 1),
        ("paris", {}, "PARIS", 0, 0),
        ("paris", {"ignore_case": True}, "PARIS", 1, 1),
        ("a|b", {"ignore_case": True}, "xB", 1, 0),
        ("(?i)paris", {}, "Paris", 1, 1),
        (r"\pL+", {}, "москва", 1, 1),
        ("é", {}, "café", 1, 0),
        ("{{item.x}}", {}, "{{item.x}}", 1, 1),
        (r"\d{2}", {}, "7", 0, 0),
        ("a*", {}, "", 1, 1),
        (r"\x00", {}, "a\x00", 1, 0),
    ],
)
def test_matching(
    pattern: str, flags: dict[str, bool], text: str, found: float, whole: float
) -> None:
    assert grade(spec(pattern, **flags), text) == Score(found)
    assert grade(spec(pattern, match="full", **flags), text) == Score(whole)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("see [12]", 1),
        ("see [13]", 0),
        ("see [13] and [12]", 0),
        ("see 12", 0),
    ],
)
@pytest.mark.parametrize("group", [1, "source"])
def test_a_group_is_compared_with_the_row(group: int | str, text: str, score: float) -> None:
    changes = {"group": group, "reference": "{{item.source}}"}
    assert grade(spec(r"\[(?P<source>\d+)\]", **changes), text, {"source": 12}) == Score(score)


def test_groups_that_hold_nothing() -> None:
    changes = {"group": 1, "reference": "{{item.a}}"}
    assert grade(spec("(a)?b", **changes), "b", {"a": ""}) == Score(0.0)
    assert grade(spec("(a*)b", **changes), "b", {"a": ""}) == Score(1.0)
    whole = {"group": 0, "reference": "{{item.a}}"}
    assert grade(spec("a+", **whole), "caat", {"a": "aa"}) == Score(1.0)


def test_a_row_without_the_reference_is_a_failure() -> None:
    outcome = grade(spec("(a)", group=1, reference="{{item.a}}"), "a", {})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "invalid_variable_error"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?=a)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-references"),
        ("(?P<x>a)(?P=x)", "back-references"),
        (r"(?<x>a)\k<x>", "back-references"),
        ("(?>a)", "atomic groups"),
        ("a++", "possessive quantifiers"),
        ("(a)?(?(1)b|c)", "conditions"),
        ("(?R)", "recursion"),
        ("(?#why)a", "comments"),
        (r"a\Z", r"write \\z"),
        (r"\u0041", "write"),
    ],
)
def test_what_re2_lacks_is_refused_by_name(pattern: str, name: str) -> None:
    with pytest.raises(SpecError, match=f"is not RE2: it has no .*{name}") as caught:
        parse_grader(spec(pattern))
    assert caught.value.param == "pattern"


@pytest.mark.parametrize(
    ("changes", "param", "words"),
    [
        ({"pattern": ""}, "pattern", "at least 1 character"),
        ({"pattern": "["}, "pattern", "missing ]"),
        ({"pattern": "a)|(b", "ignore_case": True}, "pattern", "unexpected"),
        ({"pattern": "a{2000}"}, "pattern", "invalid repetition size"),
        ({"pattern": "a" * (MAX_CHARS + 1)}, "pattern", "2,000 characters, not 2,001"),
        ({"pattern": r"(?i)(\pL{1,50}){1,19}"}, "pattern", "too large"),
        ({"match": "start"}, "match", "'search' or 'full'"),
        ({"group": 1}, "reference", "go together"),
        ({"reference": "{{item.a}}"}, "group", "go together"),
        ({"group": 2, "reference": "x"}, "pattern", "no group 2; it has 1 groups, named n"),
        ({"group": "m", "reference": "x"}, "pattern", "no group 'm'"),
        ({"group": -1, "reference": "x"}, "pattern", "no group -1"),
        ({"group": True, "reference": "x"}, "group", "whole number"),
        ({"flags": "i"}, "flags", "Unknown field"),
    ],
)
def test_refusals(changes: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_grader(spec("(?P<n>a)") | changes)
    assert caught.value.param.startswith(param)


def test_text_that_is_too_long_for_the_pattern_is_a_failure() -> None:
    costly = spec(r"(\w{1,100}\s?){10}$")
    outcome = grade(costly, "a" * 100_000)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.blame) == ("other_error", "grader")
    assert "With this pattern a text may hold" in outcome.detail
    assert grade(spec("b$"), "a" * 1_000_000) == Score(0.0)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "(a?){300}a{300}", "(x+x+)+y"]
)
@pytest.mark.timeout(20)
def test_patterns_that_explode_elsewhere(pattern: str) -> None:
    assert grade(spec(pattern, match="full"), "a" * 50_000 + "!") == Score(0.0)


@given(
    st.text(max_size=30) | st.text(alphabet="ab()[]{}|*+?^$\\.:=!<>P1dwZk#-,", max_size=30),
    st.text(),
)
@settings(deadline=None)
def test_no_pattern_and_no_text_breaks_it(pattern: str, text: str) -> None:
    for changes in ({}, {"ignore_case": True, "multiline": True, "dot_all": True}):
        try:
            found = parse_grader(spec(pattern, **changes))
        except SpecError:
            continue
        assert isinstance(grade(found, text), Score)


def test_half_a_surrogate_pair_matches_as_one_unknown_character() -> None:
    assert grade(spec("^.$"), "\ud800") == Score(1.0)
    with pytest.raises(SpecError):
        parse_grader(spec("\ud800"))


@few
@given(hostile, hostile, st.booleans())
def test_hostile_patterns_are_refused_or_fast(pattern: str, text: str, flag: bool) -> None:
    flags = {"ignore_case": flag, "dot_all": flag, "match": "full" if flag else "search"}
    graded(spec(pattern, **flags), text)
    graded(spec(f"({pattern})", group=1, reference="{{item.a}}", **flags), text, {"a": text})

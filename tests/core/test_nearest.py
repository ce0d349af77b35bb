"""Suggestions for mistyped names."""

from core.nearest import LONGEST, nearest


def test_the_name_that_looks_most_like_it() -> None:
    assert nearest("temperatur", ["top_p", "temperature"]) == "temperature"
    assert nearest("colour", ["top_p", "temperature"]) is None


def test_a_name_of_megabytes_is_not_compared() -> None:
    at_most = "x" * LONGEST
    assert nearest(at_most, [at_most]) == at_most
    assert nearest(f"{at_most}x", [at_most]) is None

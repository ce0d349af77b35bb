"""Unicode forms in bounded time."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.errors import GradeError
from graders.unicode import MAX_CHARS, MAX_RUN, Form, normalized
from tests.properties import property_test


@property_test
@given(text=st.text(), form=st.sampled_from(["NFC", "NFKC"]))
def test_same_as_the_standard_library(text: str, form: Form) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("mark", ["\u0301", "\u0315\u0300", "\u0f73", "\u0344", "\u3099"])
def test_marks_in_a_row_are_bounded(mark: str) -> None:
    normalized("NFC", ("e" + mark) * MAX_RUN)
    with pytest.raises(GradeError, match="combining characters in a row"):
        normalized("NFC", "e" + mark * (MAX_RUN + 1))


def test_length_is_bounded_beyond_ascii() -> None:
    assert len(normalized("NFKC", "a" * (MAX_CHARS + 1))) == MAX_CHARS + 1
    with pytest.raises(GradeError, match="400,000 characters, not 400,001"):
        normalized("NFKC", "é" * (MAX_CHARS + 1))

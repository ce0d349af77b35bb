"""Identifiers look like OpenAI's and do not repeat."""

import re

from core.ids import new_id
from core.nearest import nearest


def test_ids_carry_their_prefix_and_24_letters_or_digits() -> None:
    ids = {new_id("ftjob-") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"ftjob-[A-Za-z0-9]{24}", each) for each in ids)


def test_the_nearest_name() -> None:
    assert nearest("etest_samples", ["eval_samples", "group_size"]) == "eval_samples"
    assert nearest("zzz", ["eval_samples"]) is None
    assert nearest("zzz", []) is None

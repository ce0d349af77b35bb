"""Numbers that tell rows of one second apart."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.clock import next_seq


def test_each_number_is_larger_than_the_one_before() -> None:
    numbers = [next_seq() for _ in range(1000)]
    assert numbers == sorted(set(numbers))


def test_also_when_the_clock_stands_still_or_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next_seq()
    monkeypatch.setattr(time, "time_ns", lambda: first - 10**9)
    assert next_seq() == first + 1
    assert next_seq() == first + 2


def test_threads_get_different_numbers() -> None:
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda _: next_seq(), range(2000)))
    assert len(set(numbers)) == 2000


def test_a_number_fits_the_database() -> None:
    assert next_seq() < 2**63

"""Gates and retries: who may pass when, and how long a try waits."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from graders.http.gate import Gate
from graders.http.retry import Retry, is_transient, retry_after_s


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr("graders.http.gate.time.monotonic", lambda: self.now)
        monkeypatch.setattr("graders.http.gate.asyncio.sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds


def passed_at(clock: Clock, gate: Gate, count: int) -> list[float]:
    """When each of `count` requests passed, in seconds from the start."""
    start = clock.now

    async def run() -> list[float]:
        times = []
        for _ in range(count):
            async with gate.passage():
                times.append(round(clock.now - start, 6))
        return times

    return asyncio.run(run())


def test_requests_are_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert passed_at(clock, Gate(concurrency=9, per_second=2), 4) == [0, 0.5, 1, 1.5]


def test_a_pause_saves_up_a_tenth_of_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    gate = Gate(concurrency=9, per_second=50)
    times = passed_at(clock, gate, 200)
    assert times[4] == 0
    assert times[-1] == pytest.approx(195 / 50)
    clock.now += 3600
    assert passed_at(clock, gate, 6)[-1] == pytest.approx(1 / 50)


def test_without_a_rate_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert passed_at(clock, Gate(concurrency=1), 100) == [0] * 100


def test_hold_stops_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    gate = Gate(concurrency=9)
    gate.hold(5)
    gate.hold(2)
    assert passed_at(clock, gate, 2) == [5, 5]


def test_waits_double_up_to_a_cap_with_full_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = []
    monkeypatch.setattr(
        "graders.http.retry.random.uniform", lambda low, high: ranges.append((low, high)) or high
    )
    retry = Retry(base_s=0.5, cap_s=3)
    assert [retry.wait_s(failed) for failed in (1, 2, 3, 4, 5)] == [0.5, 1, 2, 3, 3]
    assert {low for low, _ in ranges} == {0}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("3", 3.0), (" 10 ", 10.0), ("0", 0.0), (None, None), ("soon", None), ("-1", None)),
        *(("٣", None), ("1e3", None), ("9" * 400, 999_999_999_999.0)),
        (f"Fri, 01 Jan {'9' * 20} 00:00:00 GMT", None),
        ("Fri, 01 Jan 2027 99999999999:00:00 GMT", None),
    ],
)
def test_retry_after_in_seconds(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value) == seconds


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3_500 < (retry_after_s(later) or 0) <= 3_600
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_what_may_be_tried_again() -> None:
    transient = {status for status in range(100, 700) if is_transient(status)}
    assert transient == {408, 409, 425, 429, *range(500, 600)}

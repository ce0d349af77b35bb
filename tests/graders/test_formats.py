"""The formats that schemas may ask for."""

import pytest

from graders.schemas import Schema


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", ["2026-02-28"], ["2026-02-30", "20260228", "2026-W05-1", "2026-2-8"]),
        ("time", ["10:00:00Z", "10:00:00.123456789+02:00"], ["10:00:00", "25:00:00Z", "10:00Z"]),
        ("date-time", ["2026-02-28T10:00:00Z"], ["2026-02-28 10:00:00Z", "2026-02-28", "T"]),
        ("duration", ["P1D", "PT1H30M", "P2W"], ["P", "PT", "1D", "P1H"]),
        ("email", ["a@b.c"], ["a", "a@", "a b@c"]),
        ("hostname", ["a-b.example"], ["-a.b", "a..b", "a" * 64]),
        ("ipv4", ["10.0.0.1"], ["10.0.0", "10.0.0.256", "::1"]),
        ("ipv6", ["::1"], ["10.0.0.1", "::g"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
    ],
)
def test_format(name: str, good: list[str], bad: list[str]) -> None:
    schema = Schema({"format": name})
    assert [text for text in good if not schema.accepts(text, chars=1)] == []
    assert [text for text in bad if schema.accepts(text, chars=1)] == []
    assert schema.accepts(5, chars=1), "formats speak about strings only"

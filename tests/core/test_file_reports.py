"""Reports are kept by content, for each kind, as long as the validator's rules stay."""

import io

import pytest
from rft.dataset import Report, validate
from sqlalchemy.orm import Session, sessionmaker

from core import file_reports
from core.models import FileReport

SHA256 = "a" * 64
GOOD = b'{"messages":[{"role":"user","content":"q"}]}\n'


def report_of(data: bytes, kind: str = "reinforcement") -> Report:
    return validate(io.BytesIO(data), kind)


def test_report_comes_back_as_it_was(factory: sessionmaker[Session]) -> None:
    report = report_of(GOOD * 2 + b'{"a":"\\ud800","a":NaN}\n\n[]')
    assert report.errors and report.warnings
    with factory.begin() as session:
        file_reports.keep(session, SHA256, "reinforcement", report)
    with factory() as session:
        assert file_reports.find(session, SHA256, "rft") == report
        assert file_reports.find(session, SHA256, "auto") == report
        assert file_reports.find(session, SHA256, "supervised") is None
        assert file_reports.find(session, "b" * 64, "reinforcement") is None


def test_auto_is_the_kind_that_the_rows_look_like(factory: sessionmaker[Session]) -> None:
    with factory.begin() as session:
        file_reports.keep(session, SHA256, "supervised", report_of(GOOD, "supervised"))
        assert file_reports.find(session, SHA256, "auto") is None
        file_reports.keep(session, SHA256, "auto", report_of(GOOD, "auto"))
        found = file_reports.find(session, SHA256, "auto")
        assert found is not None and found.kind == "reinforcement"


def test_a_later_report_replaces_an_earlier_one(factory: sessionmaker[Session]) -> None:
    for data in (b"[]", GOOD):
        with factory.begin() as session:
            plain = report_of(data, "dpo").to_dict()
            file_reports.keep(session, SHA256, "auto", plain)
    with factory() as session:
        found = file_reports.find(session, SHA256, "preference")
        assert found == report_of(GOOD, "preference")


def test_a_report_of_other_rules_is_not_found(
    factory: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    with factory.begin() as session:
        file_reports.keep(session, SHA256, "reinforcement", report_of(GOOD))
    monkeypatch.setattr(file_reports, "VERSION", "other")
    with factory() as session:
        assert file_reports.find(session, SHA256, "reinforcement") is None
        assert session.get(FileReport, (SHA256, "reinforcement")) is not None

"""docs/supervised.md and docs/dpo.md: their rows are rows, their metrics those there are."""

import io
import json
import re
from pathlib import Path

import pytest
from rft.dataset import validate

from tests.trainer.offline_jobs import MakeJob, curve, preference_job, supervised_job
from tests.trainer.reports import reports_of

DOCS = Path(__file__).parents[2] / "docs"
LOOKS = ("train", "valid", "full_valid")


def blocks(page: str) -> list[str]:
    return re.findall(r"^```json\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)


def metrics_of(page: str) -> set[str]:
    """The names in the table of metrics."""
    text = (DOCS / page).read_text().split("## Metrics\n")[1]
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    ("page", "kind"), [("supervised.md", "supervised"), ("dpo.md", "preference")]
)
def test_rows_are_rows(page: str, kind: str) -> None:
    (row,) = map(json.loads, blocks(page))
    report = validate(io.BytesIO(json.dumps(row).encode()), kind)
    assert report.ok and not report.warnings


def test_metrics_are_those_there_are(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.proof.prove", lambda *_, **__: {"differs_from_base": True})
    last = curve(reports_of(supervised_job(make_job, name="supervised")))[8]
    measured = {name for name in last if name.startswith(LOOKS)} - {"trained_tokens"}
    assert metrics_of("supervised.md") == measured
    last = curve(reports_of(preference_job(make_job, name="dpo")))[8]
    named = {f"{look}_{name}" for look in LOOKS for name in metrics_of("dpo.md")}
    assert named == {name for name in last if name.startswith(LOOKS)} - {"trained_tokens"}

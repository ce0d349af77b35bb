"""docs/datasets.md lists every rule with its mend, every kind and every field of the report."""

import re
from pathlib import Path

from rft.dataset import ALIASES, KINDS, RULES, validate
from rft.dataset.images import MAX_IMAGE_BYTES, MAX_IMAGES
from rft.dataset.lines import MAX_LINE_BYTES
from rft.dataset.overlap import NEAR, WORDS
from rft.dataset.report import MAX_LISTED
from rft.dataset.strictjson import MAX_DEPTH, MAX_VALUES

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "datasets.md").read_text(encoding="utf-8")


def test_every_rule_is_listed_with_its_mend() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (error|warning) \| (.*) \|$", TEXT, re.MULTILINE)
    rules = [(name, rule.severity, rule.mend) for name, rule in RULES.items()]
    assert listed == rules


def test_every_kind_and_alias_is_listed() -> None:
    assert all(f"| `{kind}` |" in TEXT for kind in KINDS)
    assert all(f"`{alias}`" in TEXT for alias in ALIASES)


def test_limits_are_those_of_the_code() -> None:
    assert MAX_LINE_BYTES == 16 * 2**20 and "16 MiB" in TEXT
    assert MAX_IMAGE_BYTES == 10 * 10**6 and MAX_IMAGES == 10 and "10 MB" in TEXT
    assert MAX_VALUES == 10**6 and MAX_DEPTH == 64 and "a million values" in TEXT
    assert MAX_LISTED == 100 and "the first 100" in TEXT
    assert (WORDS, NEAR) == (5, 0.8) and "runs of five words" in TEXT and "80 %" in TEXT


def test_every_field_of_the_report_is_described(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("[]")
    report = validate(tmp_path / "rows.jsonl").to_dict()
    fields = report.keys() | report["errors"][0].keys()
    assert [field for field in fields if f"`{field}`" not in TEXT] == []

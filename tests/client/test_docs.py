"""docs/datasets.md lists every rule."""

import re
from pathlib import Path

from rft.dataset import KINDS, RULES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_every_rule_is_listed() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (error|warning)", TEXT, re.MULTILINE))
    assert listed == {name: rule.severity for name, rule in RULES.items()}


def test_every_kind_is_listed() -> None:
    assert all(f"| `{kind}` |" in TEXT for kind in KINDS)

"""docs/api.md lists every path with the page that explains it."""

import re
from pathlib import Path

from tests.contract.documents import Document

DOCS = Path(__file__).parents[2] / "docs"

#: Where the paths of a tag are explained.
PAGES = {
    "Files": "[files](#files)",
    "Uploads": "[uploads](uploads.md)",
    "Fine-tuning": "[jobs](#fine-tuning-jobs)",
    "Results": "[results](results.md)",
    "Checkpoints": "[access](access.md)",
    "Dry runs": "[dry runs](dry-runs.md)",
    "Graders": "[graders](#trying-a-grader-out)",
    "Evals": "[evals](evals.md)",
    "Models": "[models](#models)",
    "Inference": "[inference](inference.md)",
    "Webhooks": "[webhooks](webhooks.md)",
    "Events": "[events](events.md)",
    "Projects": "[access](access.md)",
    "Service": "[health](#health-and-dashboard)",
}


def index(document: Document) -> list[str]:
    """The rows of the index, in the order of the document."""
    rows = []
    for path, methods in document.content["paths"].items():
        for method, operation in methods.items():
            page = PAGES[operation["tags"][0]]
            rows.append(f"| `{method.upper()} {path}` | {operation['summary']} | {page} |")
    order = list(PAGES.values())
    return sorted(rows, key=lambda row: order.index(row.split(" | ")[-1].removesuffix(" |")))


def test_the_index_lists_every_path_and_no_other(document: Document) -> None:
    text = (DOCS / "api.md").read_text().split("## Every path")[1].split("\n## ")[0]
    assert re.findall(r"^\| `.*$", text, re.M) == index(document)

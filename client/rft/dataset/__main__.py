"""Check dataset files from the command line.

    python -m rft.dataset train.jsonl [more.jsonl …] [--kind auto] [--training train.jsonl] [--json]

Ends with 1 when a file has errors, with 2 when one cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from rft.dataset.overlap import find_overlap
from rft.dataset.report import Report
from rft.dataset.rows import iter_placed_rows
from rft.dataset.validator import ALIASES, KINDS, validate


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files that the command line names; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rft.dataset", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--kind", default="auto", choices=["auto", *KINDS, *ALIASES], help="what rows are for"
    )
    parser.add_argument("--training", metavar="FILE", help="tell what also stands in this file")
    parser.add_argument("--json", action="store_true", help="write the reports as JSON lines")
    given = parser.parse_args(arguments)
    code = 0
    if given.training and (wrong := _unreadable(given.training)):
        sys.stderr.write(f"{given.training}: {wrong}\n")
        return 2
    for path in given.files:
        try:
            report = validate(path, given.kind)
            said = report.to_dict()
            if given.training and report.ok:
                rows, others = iter_placed_rows(path), iter_placed_rows(given.training)
                said["overlap"] = find_overlap(rows, others).to_dict()
        except OSError as error:
            sys.stderr.write(f"{path}: {error}\n")
            return 2
        line = json.dumps({"file": path, **said}) if given.json else _told(path, report, said)
        sys.stdout.write(f"{line}\n")
        code = code if report.ok else 1
    return code


def _unreadable(path: str) -> str | None:
    """Why the rows of a file cannot be read, None when they can."""
    try:
        report = validate(path, "auto")
    except OSError as error:
        return str(error)
    return None if report.is_jsonl else str(report.errors[0])


def _told(path: str, report: Report, said: dict[str, object]) -> str:
    lines = [f"{path}: error: {problem}" for problem in report.errors]
    lines += [f"{path}: warning: {problem}" for problem in report.warnings]
    overlap = said.get("overlap")
    if isinstance(overlap, dict):
        lines.append(
            f"{path}: {overlap['exact']} rows also stand in the training file, {overlap['near']} "
            "nearly."
        )
    errors, warnings = sum(report.error_counts.values()), sum(report.warning_counts.values())
    verdict = "can be used" if report.ok else "cannot be used"
    lines.append(
        f"{path}: {verdict} as {report.kind}: {report.valid_rows} of {report.rows} rows are valid; "
        f"{errors} errors, {warnings} warnings."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""The sentence that refuses a file which is no JSON Lines."""

from rft.dataset import RULES, Problem, Report
from rft.dataset.lines import BOM

#: The most lines that one refusal lists; the others are counted.
MAX_LISTED = 20
#: How much of a file's beginning tells whether its first row is an object, in bytes.
_BEGINNING = 4096


def cannot_be_rows(head: bytes) -> bool:
    """Say whether a file that begins like this will be refused: its first row is no object."""
    first = head[:_BEGINNING].removeprefix(BOM).lstrip()
    return bool(first) and not first.startswith(b"{")


def refusal_of(report: Report) -> str | None:
    """Say why the file is no JSON Lines, every bad line at once; None when it is.

    Whether rows also hold what training needs depends on the job, and refuses no file.
    """
    if report.is_jsonl:
        return None
    bad = sum(count for rule, count in report.error_counts.items() if _is_of_lines(rule))
    listed = [problem for problem in report.errors if _is_of_lines(problem.rule)][:MAX_LISTED]
    sentences = [_sentence(problem) for problem in listed]
    if more := bad - len(sentences):
        sentences.append(f"{more} {'more ' if sentences else ''}lines are bad.")
    return (
        "Expected file to have JSONL format, where every line is a JSON dictionary."
        f" {' '.join(sentences)}"
    )


def _is_of_lines(rule: str) -> bool:
    return RULES[rule].about in ("file", "line")


def _sentence(problem: Problem) -> str:
    if problem.rule == "empty_file":
        return problem.message
    reason = problem.message[:1].lower() + problem.message[1:]
    return f"Line {problem.line} is not a dictionary: {reason}"

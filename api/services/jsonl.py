"""Check an uploaded training file: every line is a JSON object.

Whether rows also hold what training needs depends on the job, so a worker checks that later. Both
read lines and JSON with the parser of `rft.dataset`.
"""

from collections.abc import Iterator
from typing import IO

from rft.dataset.lines import BOM, MAX_LINE_BYTES, Line, physical_lines
from rft.dataset.strictjson import parse

from core.errors import InvalidRequest

#: The most lines that one answer lists; the others are counted.
MAX_LISTED = 20


def check_jsonl(content: IO[bytes]) -> None:
    """Raise `InvalidRequest` that lists the bad lines; leaves `content` at its start."""
    listed: list[str] = []
    bad = 0
    for problem in _problems(content):
        bad += 1
        if bad <= MAX_LISTED:
            listed.append(problem)
    content.seek(0)
    if not bad:
        return
    more = [f"{bad - MAX_LISTED} more lines are bad."] if bad > MAX_LISTED else []
    shown = " ".join([*listed, *more])
    raise InvalidRequest(
        "Expected file to have JSONL format, where every line is a JSON dictionary."
        f" {shown} Nothing was stored; correct the file and upload it again.",
        param="file",
        code="invalid_file_format",
    )


def _problems(content: IO[bytes]) -> Iterator[str]:
    """Yield a sentence for each bad line, or one for a file without rows."""
    rows = 0
    for line in physical_lines(content):
        data = line.data
        if line.number == 1 and data is not None:
            data = data.removeprefix(BOM)
        if data is not None and not data.strip():
            continue
        rows += 1
        try:
            reason = _reason(line, data)
        except UnicodeDecodeError as error:
            offset = line.offset + error.start
            yield f"Line {line.number} is not a dictionary: it is not UTF-8 (byte {offset})."
            # A file in another encoding is one mistake, not one for every line.
            return
        if reason:
            yield f"Line {line.number} is not a dictionary: {reason}"
    if not rows:
        yield "The file has no rows."


def _reason(line: Line, data: bytes | None) -> str | None:
    if data is None:
        return f"it has {line.length:,} bytes and may have {MAX_LINE_BYTES:,}."
    row, findings = parse(data.decode("utf-8"))
    if findings:
        return findings[0].message
    return None if isinstance(row, dict) else "it holds JSON, but no object."

"""Files that are no JSON Lines at all: what they seem to be."""

from typing import Any

from rft.dataset.report import Finding

#: What files of other kinds start with; the longer of two that start alike comes first.
_STARTS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
    b"ARROW1": "an Arrow file",
}
_ENCODINGS = ("UTF-16", "UTF-32")


ONLY_RETURNS = "Rows are separated by carriage returns alone."


def other_format(head: bytes) -> Finding | None:
    """What a file with these first bytes is, unless it may be JSON Lines."""
    name = next((name for start, name in _STARTS.items() if head.startswith(start)), None)
    if name is None and 0 in head[:2]:
        # Without a mark: of every two bytes of ASCII text in UTF-16 one is zero.
        name = "UTF-32" if head[:2] == b"\0\0" or head[2:4] == b"\0\0" else "UTF-16"
    if name is None:
        return None
    rule = "not_utf8" if name in _ENCODINGS else "other_format"
    return Finding(rule, "", f"The file looks like {name}, not like UTF-8 text.")


def bad_line(finding: Finding, data: bytes) -> Finding:
    """Say more about a line that is no JSON, where it shows a mistake in the whole file."""
    if b"\r" in data[: finding.offset].lstrip(b"\r"):
        return finding._replace(rule="carriage_returns", message=ONLY_RETURNS)
    if data.strip() == b"{" or data.lstrip().startswith(b"["):
        hint = " One JSON document over several lines? Every row belongs on one line."
        return finding._replace(message=finding.message + hint)
    return finding


def json_hint(value: Any) -> str:
    """What a line holds that is JSON, but no object."""
    if isinstance(value, list) and any(isinstance(member, dict) for member in value):
        count = f"{len(value):,} rows" if len(value) > 1 else "a row"
        return f"The line holds a list of {count}, which belong on lines of their own."
    return "The line holds JSON, but no object."

"""The samples of a step: reading its rollout file, and the rows by which samples are found.

A rollout file is compressed JSONL, one line a completion; `samples` rows hold what is searched of
each line, so that finding one needs no file.
"""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import zstandard
from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from core.events import storable
from core.ids import new_id
from core.models import Sample

#: Characters of a completion that its row shows.
PREVIEW_CHARS = 200

#: Bytes of a rollout file that are unpacked at once: what they unpack to has to fit into memory.
_CHUNK = 1 << 16


class Unreadable(ValueError):
    """A rollout file is damaged, or holds something else."""


def read_file(path: Path) -> Iterator[bytes]:
    """Yield the lines of a local rollout file; raises Unreadable."""
    with path.open("rb") as file:
        yield from read_lines(iter(lambda: file.read(_CHUNK), b""))


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a rollout file that comes in chunks; raises Unreadable.

    No more than one line and one unpacked chunk is in memory.
    """
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    rest = io.BytesIO()
    try:
        for chunk in chunks:
            for start in range(0, len(chunk), _CHUNK):
                parts = unpacker.decompress(chunk[start : start + _CHUNK]).split(b"\n")
                for part in parts[:-1]:
                    rest.write(part)
                    yield rest.getvalue()
                    rest = io.BytesIO()
                rest.write(parts[-1])
    except zstandard.ZstdError as error:
        raise Unreadable(f"it cannot be unpacked ({error})") from error
    if not unpacker.eof or rest.getvalue():
        raise Unreadable("it ends in the middle of a line")


def parse_line(line: bytes) -> dict[str, Any]:
    """Return one sample as the trainer wrote it; raises Unreadable."""
    try:
        content = json.loads(line)
    except ValueError as error:
        raise Unreadable(f"a line is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise Unreadable("a line is no JSON object")
    return content


def rows_of(
    lines: Iterable[bytes], *, job_id: str, step: int, split: str
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each line's row in `samples`; raises Unreadable.

    A file that does not number its groups gets numbers: each run of one dataset row is a group.
    """
    group, row = -1, None
    for position, line in enumerate(lines):
        sample = parse_line(line)
        try:
            if sample["row"] != row:
                group, row = group + 1, sample["row"]
            yield {
                "id": new_id("sample_"),
                "job_id": job_id,
                "step": step,
                "split": split,
                "position": position,
                "group": sample.get("group", group),
                "row": sample["row"],
                "advantage": sample["advantage"],
                "truncated": sample["truncated"],
                "tokens": len(sample["token_ids"]),
                "preview": storable(sample["text"][:PREVIEW_CHARS]),
                **_outcome(sample["outcome"]),
            }
        except (KeyError, TypeError) as error:
            raise Unreadable(f"line {position + 1} is no sample ({error!r})") from error


def _outcome(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that an outcome (see `graders.outcome.to_wire`) fills."""
    found: dict[str, Any] = {
        "reward": outcome.get("value"),
        "failure": None,
        "failed_grader": None,
        "sub_scores": outcome.get("sub_scores") or None,
    }
    notes = outcome.get("notes")
    if outcome["outcome"] == "failure":
        found |= {"failure": outcome["kind"], "failed_grader": outcome["grader"]}
    elif notes:
        found |= {"failure": notes[0]["kind"], "failed_grader": notes[0]["grader"]}
    return found


def replace(
    session: Session, rows: list[dict[str, Any]], *, job_id: str, step: int, split: str
) -> None:
    """Put `rows` in place of the samples that a step has, in the caller's transaction."""
    session.execute(
        delete(Sample).where(Sample.job_id == job_id, Sample.step == step, Sample.split == split)
    )
    if rows:
        session.execute(insert(Sample), rows)

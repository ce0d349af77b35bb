"""Validating 1 GB of JSONL: MB/s of one core, and memory, beside Python's own parser.

python -m bench.api.validate [--mb 1000] [--dir /tmp]
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import Figure
from bench.machine import ROOT

#: Size of the file, in MB of 1,000,000 bytes.
FILE_MB = 1000
#: What is asked: MB in a second of one core's time, and how much a process may grow, in MB.
MIN_RATE, MAX_GROWTH_MB = 60, 150

_BLOCK_ROWS = 10_000
#: Stands in the rows for the number of their block, so that all rows differ.
_MARK = b"#######"
_STYLES: dict[str, dict[str, Any]] = {
    "as json.dumps writes it": {},
    "compact, in UTF-8": {"separators": (",", ":"), "ensure_ascii": False},
}

#: Runs in a process of its own: validates the file that the command line names, then has Python's
#: own parser read it, and prints what both took.
_CHILD = """
import json, re, sys, time
from rft.dataset import Validator
from rft.dataset.lines import CHUNK_BYTES
def memory(name):  # in MB
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 / 1e6
validator, before = Validator("reinforcement"), memory("VmRSS")
started = time.process_time()
with open(sys.argv[1], "rb") as file:
    while chunk := file.read(CHUNK_BYTES):
        validator.feed(chunk)
report = validator.close()
seconds, growth = time.process_time() - started, memory("VmHWM") - before
started = time.process_time()
with open(sys.argv[1], "rb") as file:
    for line in file:
        json.loads(line)
floor = time.process_time() - started
print(json.dumps({"ok": report.ok, "rows": report.rows, "warnings": report.warning_counts,
                  "seconds": seconds, "floor_s": floor, "growth_mb": growth}))
"""


def measure(mb: int = FILE_MB, folder: str | None = None) -> list[Figure]:
    """Validate a file of each style; the files are made from a seed and removed again."""
    figures = []
    for style, options in _STYLES.items():
        with tempfile.TemporaryDirectory(prefix="rft-bench-", dir=folder) as made:
            path = write_file(Path(made) / "rows.jsonl", mb * 10**6, **options)
            size = path.stat().st_size
            figures += _figures(style, size / 1e6, _validated(path))
    return figures


def _figures(style: str, mb: float, told: dict[str, Any]) -> list[Figure]:
    if not told["ok"] or told["warnings"]:
        raise RuntimeError(f"The rows were to be right: {told}")
    rate = mb / told["seconds"]
    return [
        Figure(
            name=f"validation of {mb:,.0f} MB, {style}",
            measured=rate,
            floor=mb / told["floor_s"],
            unit="MB/s of one core",
            floor_is="json.loads on every line of the same file",
            limit=f"≥ {MIN_RATE}",
            holds=rate >= MIN_RATE,
        ),
        Figure(
            name=f"growth while {told['rows']:,} rows are validated, {style}",
            measured=told["growth_mb"],
            floor=0,
            unit="MB",
            floor_is="the process before the first byte",
            limit=f"≤ {MAX_GROWTH_MB}",
            holds=told["growth_mb"] <= MAX_GROWTH_MB,
        ),
    ]


def _validated(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", _CHILD, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def write_file(path: Path, size: int, *, seed: int = 1, **options: Any) -> Path:
    """Write rows of conversations: mostly prose, a fifth with tools, some far from ASCII."""
    draw = random.Random(seed)
    rows = (json.dumps(_row(draw), **options) for _ in range(_BLOCK_ROWS))
    block = "\n".join(rows).encode() + b"\n"
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            number += 1
            file.write(block.replace(_MARK, b"%07d" % number))
    return path


def _row(draw: random.Random) -> dict[str, Any]:
    mark = f"{draw.randrange(10**9)}-{_MARK.decode()}"
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _prose(draw, 120)},
        {"role": "user", "content": f"Case {mark}: {_prose(draw, draw.randrange(100, 900))}"},
    ]
    row: dict[str, Any] = {"messages": messages, "answer": _prose(draw, 20), "id": mark}
    if draw.random() < 0.2:
        row["tools"] = [_tool("find_order", "id"), _tool("refund", "id", "reason")]
        arguments = json.dumps({"id": mark})
        function = {"name": "find_order", "arguments": arguments}
        call = {"id": f"call_{mark}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": '{"state": "sent"}'},
            {"role": "user", "content": _prose(draw, 80)},
        ]
    if draw.random() < 0.3:
        row["rubric"] = {"weights": [0.5, 0.25], "labels": ["late", "lost"], "strict": True}
    return row


def _prose(draw: random.Random, length: int) -> str:
    said = ""
    while len(said) < length:
        word = "".join(draw.choices("etaoinshrdlucmfwyp", k=draw.randrange(2, 9)))
        odd = draw.random()
        if odd < 0.01:
            word = draw.choice(["Zürich", "naïve", "東京", "🙂", '"so"', "https://example.org/a"])
        said += word + (".\n" if odd > 0.98 else ": " if odd > 0.97 else " ")
    return said


def _tool(name: str, *fields: str) -> dict[str, Any]:
    properties = {field: {"type": "string", "description": f"the {field}"} for field in fields}
    parameters = {"type": "object", "properties": properties, "required": list(fields)}
    function = {"name": name, "description": "What it does.", "parameters": parameters}
    return {"type": "function", "function": function}


def main() -> int:
    """Measure, print, and end with 1 when a figure misses what is asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.api.validate")
    parser.add_argument("--mb", type=int, default=FILE_MB, help="size of each file, in MB")
    parser.add_argument("--dir", help="where the files are made; some GB must be free")
    arguments = parser.parse_args()
    figures = measure(arguments.mb, arguments.dir)
    Console().print_json(data=[figure.wire() for figure in figures])
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

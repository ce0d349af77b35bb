"""How long the rows of a file are, in tokens of the model that is to be trained.

    python -m workers.prompt_lengths MODEL FILE LIMIT [--kind KIND] [--target FIELD]
        [--template FILE]

Counting needs the model's tokenizer, whose libraries take half a gigabyte of memory and seconds to
load. So it happens in a process of its own, and only when a row may be too long by its bytes: a
token stands for at least one byte.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rft.dataset import LengthCheck, Report, examine, iter_rows

from core.errors import ConfigurationError
from core.process.environment import clean_environment
from core.registry import BaseModel

#: Tokens that a chat template may add to a conversation, and to each of its messages.
TEMPLATE_TOKENS, MESSAGE_TOKENS = 256, 32

#: How long counting may take, in seconds: tens of thousands of long rows.
TIMEOUT_S = 300.0

#: The answers of a preference.
_OUTPUTS = ("preferred_output", "non_preferred_output")

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")


def too_long(
    base: BaseModel, path: Path, limit: int, *, kind: str, target: str | None = None
) -> Report | None:
    """Return a report of the rows with more than `limit` tokens, None when there are none.

    Args:
        kind: what a row holds; reinforcement counts the prompt, the others the answers too.
        target: the field that is learnt after the prompt, which then counts too.

    Raises:
        ConfigurationError: the model's tokenizer cannot be used.
    """
    if not any(at_most(row, target) > limit for row in iter_rows(path)):
        return None
    if not any((base.path / name).is_file() for name in _TOKENIZER_FILES):
        return None  # the trainer says that the model lacks one, and counts by itself
    command = [sys.executable, "-m", "workers.prompt_lengths", str(base.path), str(path)]
    command += [str(limit), "--kind", kind, *(["--target", target] if target else [])]
    if base.chat_template is not None:
        command += ["--template", str(base.chat_template)]
    done = subprocess.run(
        command,
        env=clean_environment(os.environ),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigurationError(f"The prompts cannot be counted with model {base.id}: {last}.")
    report = Report.from_dict(json.loads(done.stdout.splitlines()[-1]))
    return None if report.ok else report


def at_most(row: dict[str, Any], target: str | None = None) -> int:
    """An upper bound of a row's tokens, which costs nothing."""
    given = row.get("input", row)
    said = [given["messages"], given.get("tools"), row.get(target) if target else None]
    said += [row.get(name) for name in _OUTPUTS]
    size = sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in said if part)
    return TEMPLATE_TOKENS + MESSAGE_TOKENS * (len(given["messages"]) + 1) + size


def counter(tokenizer: Any, *, kind: str, target: str | None) -> Callable[[dict[str, Any]], int]:
    """Return what counts a row's tokens as the trainer does.

    Conversations are counted as the template writes them whole; the trainer, which writes each
    answer apart, may need a token more or less.
    """
    from trainer.data import prompt_ids, template_text

    def whole(messages: list[dict[str, Any]], tools: Any) -> int:
        text = template_text(tokenizer, messages, tools, add_generation_prompt=False)
        # White space after the end of the turn belongs to the template.
        return len(tokenizer.encode(text.rstrip(), add_special_tokens=False))

    def count(row: dict[str, Any]) -> int:
        if kind == "supervised":
            return whole(row["messages"], row.get("tools"))
        if kind == "preference":
            given = row["input"]
            both = [[*given["messages"], *row[name]] for name in _OUTPUTS]
            return max(whole(messages, given.get("tools")) for messages in both)
        return alone(row)

    def alone(row: dict[str, Any]) -> int:
        messages, answer = row["messages"], row.get(target) if target else None
        if kind == "warm_start":
            messages, answer = messages[:-1], messages[-1].get("content")
        tokens = len(prompt_ids(tokenizer, messages, row.get("tools")))
        if isinstance(answer, list):
            answer = "".join(part["text"] for part in answer if part["type"] == "text")
        if answer is not None:
            text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            # One more ends the turn.
            tokens += len(tokenizer.encode(text, add_special_tokens=False)) + 1
        return tokens

    return count


def main() -> None:
    """Count, and write the report as the last line."""
    parser = argparse.ArgumentParser(prog="python -m workers.prompt_lengths", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("limit", type=int)
    parser.add_argument("--kind", default="reinforcement")
    parser.add_argument("--target")
    parser.add_argument("--template", type=Path)
    arguments = parser.parse_args()

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    if arguments.template is not None:
        tokenizer.chat_template = arguments.template.read_text(encoding="utf-8")
    target = arguments.target
    check = LengthCheck(
        counter(tokenizer, kind=arguments.kind, target=target),
        arguments.limit,
        at_most=lambda row: at_most(row, target),
    )
    report = examine(arguments.file, [check], kind=arguments.kind)
    sys.stdout.write(json.dumps(report.to_dict()) + "\n")


if __name__ == "__main__":
    main()

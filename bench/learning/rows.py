"""Write a task's rows: `python -m bench.learning.rows TASK FOLDER`, where reasoning-gym is.

The rows are drawn with a fixed seed and have different questions, so that nothing which is held out
is shown or trained on.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from bench.learning.tasks import DEMO, HELD_OUT_ROWS, TASKS, TRAIN_ROWS, Task

#: Of the questions that are drawn.
SEED = 20_000


def write(task: Task, folder: Path) -> None:
    """Write `train.jsonl`, `held_out.jsonl` and `warm_start.jsonl` of a task."""
    folder.mkdir(parents=True, exist_ok=True)
    if task.generator is None:
        _copy_demo(folder)
        return
    rows = _drawn(task, task.demonstrations + HELD_OUT_ROWS + TRAIN_ROWS)
    shown, rest = rows[: task.demonstrations], rows[task.demonstrations :]
    _write(folder / "warm_start.jsonl", [_demonstration(row) for row in shown])
    _write(folder / "held_out.jsonl", rest[:HELD_OUT_ROWS])
    _write(folder / "train.jsonl", rest[HELD_OUT_ROWS:])


def _drawn(task: Task, count: int) -> list[dict[str, Any]]:
    """Rows with different questions.

    Raises:
        ValueError: the task has not so many.
    """
    import reasoning_gym

    # Small tasks repeat themselves: more are drawn than are needed.
    drawn = reasoning_gym.create_dataset(task.generator, size=4 * count, seed=SEED, **task.config)
    answers = {entry["question"]: entry["answer"] for entry in drawn}
    if len(answers) < count:
        raise ValueError(f"{task.name} has {len(answers)} different questions of {count} wanted.")
    return [_row(question, answer) for question, answer in list(answers.items())[:count]]


def _row(question: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}], "answer": answer}


def _demonstration(row: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [*row["messages"], {"role": "assistant", "content": row["answer"]}]}


def _copy_demo(folder: Path) -> None:
    shutil.copy(DEMO / "data" / "train.jsonl", folder)
    shutil.copy(DEMO / "data" / "warm_start.jsonl", folder)
    lines = (DEMO / "data" / "validation.jsonl").read_text(encoding="utf-8").splitlines(True)
    (folder / "held_out.jsonl").write_text("".join(lines[:HELD_OUT_ROWS]), encoding="utf-8")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Write one task's rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    write(TASKS[args.task], args.folder)


if __name__ == "__main__":
    main()

"""Learning the same task with both trainers: rows, orders, and what each side leaves behind."""

import asyncio
import dataclasses
import json
import string
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bench.environment import comparison_python
from bench.learning import rows, runs, start, with_ours
from bench.learning.order import WEIGHTS, Order
from bench.learning.runs import Run, planned
from bench.learning.score import SAMPLES, scored
from bench.learning.tasks import HELD_OUT_ROWS, TASKS, TRAIN_ROWS, Task
from bench.learning.trainer_process import TrainerFailed, TrainerProcess
from bench.machine import ROOT
from graders import Engine
from graders.outcome import Failure
from tests.fakes.tiny_model import make_tiny_model
from tests.trainer.rollouts import rollout
from trainer.errors import GraderFailures
from trainer.sampling import Rollout

GENERATED = [task for task in TASKS.values() if task.generator is not None]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def reasoning_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator of sums that repeats every question once."""

    def create_dataset(_: str, *, size: int, **__: Any) -> list[dict[str, str]]:
        return [{"question": f"{i // 2} + 1", "answer": str(i // 2 + 1)} for i in range(size)]

    fake = SimpleNamespace(create_dataset=create_dataset)
    monkeypatch.setitem(sys.modules, "reasoning_gym", fake)


@pytest.mark.usefixtures("reasoning_gym")
def test_nothing_that_is_held_out_is_trained_on(tmp_path: Path) -> None:
    task = GENERATED[0]
    rows.write(task, tmp_path)
    files = [read(tmp_path / f"{name}.jsonl") for name in ("warm_start", "held_out", "train")]
    assert [len(file) for file in files] == [task.demonstrations, HELD_OUT_ROWS, TRAIN_ROWS]
    questions = [row["messages"][0]["content"] for file in files for row in file]
    assert len(set(questions)) == len(questions)


@pytest.mark.usefixtures("reasoning_gym")
def test_demonstrations_end_with_the_answer(tmp_path: Path) -> None:
    rows.write(GENERATED[0], tmp_path)
    shown = read(tmp_path / "warm_start.jsonl")[0]["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant"]
    asked, answered = (message["content"] for message in shown)
    assert int(answered) == int(asked.removesuffix(" + 1")) + 1


def test_the_demo_is_learned_from_its_own_rows(tmp_path: Path) -> None:
    rows.write(TASKS["tickets"], tmp_path)
    assert len(read(tmp_path / "held_out.jsonl")) == HELD_OUT_ROWS
    assert read(tmp_path / "train.jsonl")[0]["ticket"]


@pytest.mark.parametrize("task", GENERATED, ids=lambda task: task.name)
def test_graders_tell_the_answer_from_another(task: Task) -> None:
    async def grade(text: str) -> float:
        outcome = (await engine.grade({"output_text": text}, {"answer": "12"})).outcome
        return outcome.value  # type: ignore[union-attr]

    engine = Engine({**task.grader})
    assert asyncio.run(grade("12")) == 1.0
    assert asyncio.run(grade("5, 3, 1")) < 0.6


def test_the_start_reads_all_demonstrations_so_often() -> None:
    spec = start.job_spec(TASKS["sums"])
    assert spec.method.type == "supervised"
    assert spec.method.max_steps * spec.method.batch_size == 3 * 64
    assert spec.adapter.rank == 0


def test_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    order = make_order(tmp_path, start=tmp_path)
    order.write(tmp_path / "order.json")
    assert Order.read(tmp_path / "order.json") == order


def test_start_and_last_step_are_scored(tmp_path: Path) -> None:
    order = make_order(tmp_path, start=tmp_path)
    assert dataclasses.replace(order, steps=7, score_every=3).scored_steps == [0, 3, 6, 7]
    assert dataclasses.replace(order, steps=6, score_every=3).scored_steps == [0, 3, 6]


class Sampler:
    """A sampler and collector: sampled completions score the weight of their row, greedy ones 1."""

    def __init__(self) -> None:
        self.engine, self.weights = self, torch.zeros(2)

    def load_weights(self, policy: Any) -> None:
        """Take over the weights."""
        self.weights = dict(policy.sampler_weights())["scores"]

    def collect(self, rows: list[Any], sampling: Any) -> list[Rollout]:
        """One rollout for each row; the first of each row's scores nothing."""
        if sampling.temperature == 0:
            return [rollout(1.0, row=i) for i in rows]
        assert rows == [0] * SAMPLES + [1] * SAMPLES
        return [
            rollout(self.weights[i].item() if place % SAMPLES else 0.0, row=i)
            for place, i in enumerate(rows)
        ]


def test_scores_are_those_of_the_weights_of_each_step(tmp_path: Path) -> None:
    order, sampler = make_order(tmp_path, start=tmp_path), Sampler()
    order.step_folder(1).mkdir()
    save_file({"scores": torch.tensor([1.0, 0.5])}, order.step_folder(1) / WEIGHTS)
    found = [scored(sampler, [0, 1], order, step) for step in (0, 1)]  # type: ignore[arg-type,list-item]
    assert found[0] == {"step": 0, "score": 0.0, "greedy": 1.0, "rows": [0.0, 0.0]}
    assert found[1] == {"step": 1, "score": 0.375, "greedy": 1.0, "rows": [0.5, 0.25]}


def test_what_cannot_be_graded_is_no_zero(tmp_path: Path) -> None:
    sampler = Sampler()
    sampler.collect = lambda *_: [rollout(Failure("other_error", "broken"))]  # type: ignore[method-assign]
    with pytest.raises(GraderFailures, match="1 of 1 completions could not be graded"):
        scored(sampler, [0], make_order(tmp_path, start=tmp_path), 0)  # type: ignore[arg-type,list-item]


def test_sides_take_turns() -> None:
    assert [(run.side, run.seed) for run in planned(["tickets"], [1, 2])] == [
        ("trl", 1),
        ("ours", 1),
        ("trl", 2),
        ("ours", 2),
    ]


def test_a_run_is_kept_until_its_task_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RESULTS", tmp_path)
    run, task = Run("tickets", "ours", 1), TASKS["tickets"]
    assert not run.kept
    order = Order.of(task, seed=1, start=tmp_path, train=tmp_path, work=tmp_path)
    result = {"order": runs.without_paths(order), "start": task.start}
    run.path.write_text(json.dumps(result))
    assert run.kept
    for change in ({"learning_rate": 1.0}, {"start_epochs": 99}):
        monkeypatch.setitem(TASKS, "tickets", dataclasses.replace(task, **change))
        assert not run.kept


def test_a_start_is_scored_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def module(_: str, name: str, work: Path, *files: Path | str) -> None:
        order = Order.read(work / "order.json")
        assert (name, order.scored_steps) == ("bench.learning.score", [0])
        (work / files[-1]).write_text(json.dumps([{"step": 0, "score": 0.25, "greedy": 0.5}]))

    monkeypatch.setattr(runs, "CACHE", tmp_path)
    monkeypatch.setattr(runs, "rows_of", lambda _: tmp_path)
    monkeypatch.setattr(runs, "start_of", lambda _: tmp_path)
    monkeypatch.setattr(runs, "_module", module)
    assert runs.score_start("sums")["score"] == 0.25


@pytest.mark.slow
def test_a_trainer_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(TrainerFailed, match="FileNotFoundError"):
        TrainerProcess(tmp_path).follow(print)


@pytest.mark.slow
def test_ours_leaves_the_weights_of_scored_steps(tmp_path: Path) -> None:
    order = make_order(tmp_path, start=make_tiny_model(tmp_path / "model"))
    steps = with_ours.train(order)
    check(order, [dataclasses.asdict(step) for step in steps])
    assert sorted(path.name for path in Path(order.work).iterdir()) == ["step-1", "step-2"]


@pytest.mark.slow
def test_trl_leaves_the_weights_of_scored_steps(tmp_path: Path) -> None:
    order = make_order(tmp_path, start=make_tiny_model(tmp_path / "model"))
    order.write(tmp_path / "order.json")
    files = [str(tmp_path / "order.json"), str(tmp_path / "steps.json")]
    command = [comparison_python(), "-m", "bench.learning.with_trl", *files]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    check(order, json.loads((tmp_path / "steps.json").read_text()))


def make_order(tmp_path: Path, *, start: Path) -> Order:
    """Two small steps whose grader tells random texts apart by their letters."""
    (tmp_path / "work").mkdir()
    train = tmp_path / "train.jsonl"
    messages = [{"role": "user", "content": "Say a."}]
    train.write_text("".join(json.dumps({"messages": messages, "n": i}) + "\n" for i in range(4)))
    grader = {
        "type": "text_similarity",
        "name": "near",
        "evaluation_metric": "fuzzy_match",
        "input": "{{sample.output_text}}",
        "reference": string.ascii_letters + string.digits,
    }
    return Order(
        start=str(start),
        train=str(train),
        work=str(tmp_path / "work"),
        grader=grader,
        seed=1,
        steps=2,
        learning_rate=1e-2,
        max_completion_tokens=6,
        batch_size=2,
        group_size=4,
        score_every=1,
        engine="transformers",
    )


def check(order: Order, steps: list[dict[str, Any]]) -> None:
    """Both steps are there, and the weights moved at each."""
    assert len(steps) == order.steps
    assert all(step["seconds"] > 0 and 0 <= step["reward"] <= 1 for step in steps)
    begin = load_file(Path(order.start) / WEIGHTS)
    first, second = (load_file(order.step_folder(step) / WEIGHTS) for step in (1, 2))
    assert set(first) == set(second) == set(begin)
    assert all(each.dtype == torch.bfloat16 for each in first.values())
    for before, after in ((begin, first), (first, second)):
        assert any((before[name].float() - after[name].float()).abs().max() > 0 for name in after)

"""What the benchmark of reinforcement steps makes of what its contenders noted."""

from pathlib import Path
from typing import Any

import pytest

from bench.rl.job import write_job
from bench.rl.record import Recorder, Step
from bench.rl.runs import OURS, PLAIN, Run
from bench.rl.speed import TRL_BEST, TRL_DEFAULTS, figures_of, update_tflops
from bench.rl.workload import NEARNESS_GRADER, Workload
from trainer.data import batch_for_step, read_rows

COUNTS: dict[str, Any] = {
    "completions": 64,
    "completion_tokens": 3000,
    "prompt_tokens": 900,
    "truncated": 0,
    "reward": 0.5,
    "trained": 32,
    "trained_completion_tokens": 1500,
    "trained_prompt_tokens": 500,
}


def a_run(seconds: float, *, updating: float, peaks: list[float], peak_tflops: float = 1.0) -> Run:
    """Two equal steps that sample for a second and do other things with what is left."""
    step = Step(
        seconds=seconds,
        phases={"sampling": 1.0, "updating": updating},
        memory={"peaks_mib": peaks},
        **COUNTS,
    )
    notes = {"parameters": 135_000_000, "peak_tflops": peak_tflops}
    return Run("any", "warm", [step, step], notes)


def held(runs: dict[str, list[Run]]) -> dict[str, bool]:
    return {figure.name: figure.holds for figure in figures_of(runs, "warm")}


def test_bars_hold_at_what_is_asked_and_not_below_it() -> None:
    # 6 × 135 million × 2,000 trained tokens in a second are 1.62 TFLOP/s.
    ours = a_run(2.0, updating=0.9, peaks=[500.0, 100.0], peak_tflops=5.0)
    others = {
        PLAIN.name: [a_run(5.0, updating=3.0, peaks=[1.0])],
        TRL_DEFAULTS.name: [a_run(16.0, updating=9.0, peaks=[1000.0])],
        TRL_BEST.name: [a_run(16.0, updating=9.0, peaks=[1000.0])],
    }
    assert held({OURS.name: [ours], **others}) == {
        "completions from the warm model, beside TRL 1.16 with its defaults": True,
        "completions from the warm model, beside TRL 1.16 at its best here": True,
        "completions from the warm model, beside a plain loop with the same sampler": True,
        "update from the warm model": True,
        "neither sampling nor update from the warm model": True,
        "peak memory from the warm model": True,
    }
    slow = a_run(2.2, updating=0.95, peaks=[501.0, 100.0], peak_tflops=5.2)
    assert not any(held({OURS.name: [slow], **others}).values())


def test_useful_work_counts_what_was_trained_on_only() -> None:
    run = a_run(4.0, updating=2.0, peaks=[1.0])
    assert update_tflops(run) == pytest.approx(6 * 135e6 * 2000 / 2.0 / 1e12)


def test_rates_count_all_completions_and_the_rest_of_a_step_is_other() -> None:
    run = a_run(4.0, updating=2.0, peaks=[1.0])
    assert run.completions_per_s == 16.0
    assert (run.phase("updating"), run.phase("sync"), run.phase("other")) == (2.0, 0.0, 1.0)


def test_a_phase_inside_another_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("bench.rl.record.time.perf_counter", lambda: now[0])
    recorder = Recorder()
    now[0] = 10.0
    recorder.begin()
    with recorder.phase("updating"):
        now[0] += 1.0
        with recorder.phase("sampling"):
            now[0] += 4.0
        now[0] += 2.0
    now[0] += 0.5
    recorder.end_step(**COUNTS)
    (step,) = recorder.steps
    assert (step.phases, step.seconds) == ({"sampling": 4.0, "updating": 3.0}, 7.5)
    assert step.memory["peaks_mib"][0] > 10


def test_our_trainer_takes_the_rows_in_the_order_of_the_workload(tmp_path: Path) -> None:
    workload = Workload.support(
        name="order",
        start=str(tmp_path / "weights"),
        grader=NEARNESS_GRADER,
        steps=5,
        prompts=3,
        group_size=2,
        max_tokens=8,
        seed=4,
    )
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text('{"max_position_embeddings": 512}')
    workload = Workload(**{**vars(workload), "base": str(base)})
    write_job(workload, tmp_path / "job", max_staleness=0)
    places: list[Any] = read_rows(tmp_path / "job" / "data" / "train.jsonl")
    taken = [row for step in range(5) for row in batch_for_step(places, step, 3, 4)]
    assert taken == workload.rows
    assert (tmp_path / "job" / "init").readlink() == tmp_path / "weights"

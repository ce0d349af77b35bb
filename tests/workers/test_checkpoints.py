"""Which checkpoints are kept."""

import pytest

from core.models import Checkpoint
from tests.workers.lab import Lab
from workers.supervisor.checkpoints import superseded


def row(
    step: int,
    reward: float | None,
    *,
    state: bool = True,
    final: bool = False,
    phase: str = "rl",
) -> Checkpoint:
    metrics = {} if reward is None else {"full_valid_mean_reward": reward}
    return Checkpoint(
        id=f"{step}{'f' if final else ''}",
        step=step,
        metrics=metrics,
        has_state=state,
        is_final=final,
        phase=phase,
    )


@pytest.mark.parametrize(
    ("rows", "retired", "stateless"),
    [
        ([], [], []),
        ([row(0, None)], [], []),
        # The last one stays whatever its reward; its state is the only one needed.
        ([row(0, None), row(2, 0.1)], ["0"], []),
        ([row(2, 0.9), row(4, 0.8), row(6, 0.7), row(8, 0.1)], [], ["2", "4", "6"]),
        ([row(2, 0.1), row(4, 0.8), row(6, 0.7), row(8, 0.9)], ["2"], ["4", "6"]),
        # Of equals the later is kept.
        ([row(s, 0.5) for s in (2, 4, 6, 8)], ["2"], ["4", "6"]),
        ([row(2, 0.0), row(4, None), row(6, 0.1)], ["4"], ["2"]),
        ([row(2, 0.5, state=False), row(6, 0.1)], [], []),
        # A warm start lies before all steps, whatever its own are.
        ([row(9, None, phase="warm_start"), row(0, None), row(2, 0.1)], ["9", "0"], []),
        # The final model is never let go, and takes no place among the best.
        ([row(2, 0.5), row(4, 0.4), row(6, 0.9, state=False, final=True)], [], ["2"]),
    ],
)
def test_three_best_and_the_last_stay_with_one_state(
    rows: list[Checkpoint], retired: list[str], stateless: list[str]
) -> None:
    gone, without_state = superseded(rows)
    assert ([r.id for r in gone], [r.id for r in without_state]) == (retired, stateless)


def epoch(step: int, epochs: float) -> Checkpoint:
    made = row(step, None, phase="supervised")
    made.metrics = {"epoch": epochs}
    return made


@pytest.mark.parametrize(
    ("rows", "retired"),
    [
        ([epoch(3, 1.1), epoch(6, 2.2), epoch(8, 3.0), epoch(11, 4.1)], ["3"]),
        # Those within an epoch go as soon as a later one is there.
        ([epoch(1, 0.4), epoch(3, 1.1), epoch(5, 1.9)], ["1"]),
        ([epoch(3, 1.1), epoch(4, 1.5), epoch(6, 2.2)], ["4"]),
    ],
)
def test_without_rewards_the_ends_of_the_last_epochs_stay(
    rows: list[Checkpoint], retired: list[str]
) -> None:
    assert [r.id for r in superseded(rows)[0]] == retired


def test_objects_of_retired_checkpoints_are_deleted_and_kept_ones_are_whole(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.script(checkpoint_every=1, steps=12)
    lab.run()
    kept = lab.checkpoints(job_id)
    assert len(kept) in (4, 5)
    stored = set(lab.context.store.list("jobs/")) | set(lab.context.store.list("models/"))
    for checkpoint in kept:
        assert f"{checkpoint.object_prefix}/manifest.json" in stored
    steps = {key.split("/")[3] for key in stored if "/checkpoints/" in key}
    assert steps == {str(checkpoint.step) for checkpoint in kept if not checkpoint.is_final}


def test_each_checkpoint_has_a_name_of_its_own(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    *steps, final = lab.checkpoints(job_id)
    for checkpoint in steps:
        assert checkpoint.name.startswith("ft:base:org-rft:lab:")
        assert checkpoint.name.endswith(f":ckpt-step-{checkpoint.step}")
    assert ":ckpt-step" not in final.name
    assert len({checkpoint.name.split(":")[4] for checkpoint in [*steps, final]}) == len(steps) + 1

"""A job that was paused, wherever it was, goes on as if it had not been, bit for bit."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graders.client import start_grader_process
from tests.trainer.reports import reports_of, reports_until_paused
from trainer import proof
from trainer.reinforcement.run import ReinforcementJob

MakeJob = Callable[..., Path]

ALGORITHMS = ("grpo", "dr_grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "reinforce++", "ppo")
WITHOUT_DATA = {"train": "data/train.jsonl", "validation": None, "warm_start": None}
#: Marks for each of some letters: of what a random model writes, most groups get a spread.
LETTERS = "abcdefgh"
GRADER = {
    "type": "multi",
    "name": "letters",
    "graders": {
        letter: {
            "type": "string_check",
            "name": letter,
            "operation": "like",
            "input": "{{sample.output_text}}",
            "reference": letter,
        }
        for letter in LETTERS
    },
    "calculate_output": f"({' + '.join(LETTERS)}) / {len(LETTERS)}",
}
SHORT: dict[str, Any] = {"data": WITHOUT_DATA, "warm_start": None, "grader": GRADER}


@pytest.fixture(scope="module", autouse=True)
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One grader process for all the jobs here, as a supervisor starts one."""
    process = start_grader_process(GRADER, tmp_path_factory.mktemp("grader"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RFT_GRADER_SOCKET", str(process.socket_path))
        # What exports are worth is tested elsewhere; here it would only take time.
        patch.setattr(proof, "prove", lambda *_, **__: {"differs_from_base": True})
        yield
    process.close()


def _of(reports: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [r for r in reports if r["type"] == kind]


#: Metrics that depend on the clock and the machine.
CLOCK = {"timing", "throughput", "memory", "grader_latency_mean_s", "graders"}


def curve(reports: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """All that metrics say about learning."""
    return {
        (r["phase"], r["step"]): {k: v for k, v in r["data"].items() if k not in CLOCK}
        for r in _of(reports, "metrics")
    }


def paused_and_resumed(
    make_job: MakeJob, changes: dict[str, Any], *, saying: str, **after: Any
) -> None:
    """Compare a straight run with one that is paused after a report with these fields."""
    straight = curve(reports_of(make_job("straight", **copy.deepcopy(changes))))
    first = make_job("first", **copy.deepcopy(changes))
    before = reports_until_paused(first, saying=saying, **after)
    second = make_job("second", **copy.deepcopy(changes))
    last = _of(before, "checkpoint")[-1]
    assert last["state"]
    (first / last["path"]).rename(second / "resume")
    resumed = reports_of(second)
    (started,) = _of(resumed, "started")
    at = last["step"] if last["phase"] == "warm_start" else None
    assert started["resumed"] and started["warm_start_step"] == at
    assert set(curve(before)).isdisjoint(curve(resumed))
    assert all(data.get("updates", 1) > 0 for data in straight.values())
    assert curve(before) | curve(resumed) == straight


def changed(**hyperparameters: Any) -> dict[str, Any]:
    """A short job with these hyperparameters."""
    # Hardly anything that a random model writes ends by itself.
    values = {"max_steps": 3, "mask_truncated": False, **hyperparameters}
    return {**SHORT, "hyperparameters": values}


VARIANTS: dict[str, dict[str, Any]] = {
    **{name: changed(algorithm=name) for name in ALGORITHMS},
    "adapter": {**changed(), "adapter": {"rank": 4}},
    "adapter-ppo": {**changed(algorithm="ppo", gae_lambda=0.95), "adapter": {"rank": 4}},
    "kl-in-loss": changed(kl_coefficient=0.1),
    "kl-in-reward": changed(kl_coefficient=0.1, kl_placement="reward", kl_estimator="k1"),
    "resampled": changed(algorithm="dapo", resample_rounds=2, overlong_buffer_tokens=4),
    "updates": changed(rollout_epochs=2, minibatches=2),
    "ahead": changed(max_staleness=1, max_steps=4),
    "ahead-resampled": changed(max_staleness=1, resample_rounds=1, minibatches=2),
}
#: One of each kind of state; the others are left to the slow part.
FAST = ("adapter-ppo", "kl-in-loss", "ahead-resampled")


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in VARIANTS]
)
def test_after_a_step(make_job: MakeJob, name: str) -> None:
    paused_and_resumed(
        make_job, VARIANTS[name], saying="Paused after step 1", type="metrics", phase="rl"
    )


def test_inside_the_warm_start(make_job: MakeJob) -> None:
    changes = {"hyperparameters": {"max_steps": 1}}
    saying = "Paused after step 3 of the warm start"
    paused_and_resumed(make_job, changes, saying=saying, type="metrics", phase="warm_start", step=3)


def test_before_the_warm_start(make_job: MakeJob) -> None:
    changes = {"hyperparameters": {"max_steps": 1}}
    paused_and_resumed(make_job, changes, saying="Paused before the warm start")


def test_before_the_first_step(make_job: MakeJob) -> None:
    paused_and_resumed(make_job, changed(max_steps=1), saying="Paused before the first step")


def test_during_the_evaluation_after_the_warm_start(make_job: MakeJob) -> None:
    changes = {"hyperparameters": {"max_steps": 1}}
    paused_and_resumed(
        make_job,
        changes,
        saying="Paused before the first step",
        type="phase",
        phase="warm_start_evaluation",
    )


def test_the_best_weights_of_a_warm_start_survive_a_pause(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def validate(job: ReinforcementJob) -> float:
        # Weights grow as they learn, so the first validation has the best figure.
        return -sum(float(m.square().sum()) for m in job.policy.masters.values())

    monkeypatch.setattr(ReinforcementJob, "validate", validate)
    changes = {
        **changed(max_steps=1),
        "data": {**WITHOUT_DATA, "warm_start": "data/warm_start.jsonl"},
        "warm_start": {
            "epochs": 5,
            "learning_rate": 1e-2,
            "batch_size": 4,
            "reference_field": None,
        },
    }
    seen = curve(reports_of(make_job("seen", **copy.deepcopy(changes))))
    rewards = [seen["warm_start", step]["full_valid_mean_reward"] for step in range(1, 6)]
    assert rewards == sorted(rewards, reverse=True)
    paused_and_resumed(
        make_job,
        changes,
        saying="Paused after step 4 of the warm start",
        type="metrics",
        phase="warm_start",
        step=4,
    )


def test_ahead_with_weights_that_stay_is_the_synchronous_path(make_job: MakeJob) -> None:
    runs = []
    for name, staleness in (("none", 0), ("one", 1)):
        changes = changed(max_staleness=staleness, learning_rate=1e-30, max_steps=4)
        runs.append(curve(reports_of(make_job(name, **copy.deepcopy(changes)))))
    behind = [[data.pop("staleness") for data in run.values()] for run in runs]
    assert behind == [[0, 0, 0, 0], [0, 1, 1, 1]]
    assert runs[0] == runs[1]


def test_the_first_step_ahead_is_that_of_the_synchronous_path(make_job: MakeJob) -> None:
    first = []
    for name, staleness in (("none", 0), ("one", 1)):
        changes = changed(max_staleness=staleness, max_steps=2)
        run = curve(reports_of(make_job(name, **copy.deepcopy(changes))))
        first.append(run["rl", 1])
        second = run["rl", 2]
        assert second["staleness"] == staleness
    assert first[0] == first[1]
    # The second was sampled by the policy before the first update: the gap is that update.
    assert second["mismatch_mean"] > 10 * first[1]["mismatch_mean"]


def test_every_sample_of_a_step_is_kept(make_job: MakeJob) -> None:
    job_dir = make_job(**changed(algorithm="dapo", resample_rounds=3, max_steps=1, group_size=2))
    reports = reports_of(job_dir)
    data = _of(reports, "metrics")[-1]["data"]
    assert data["sampling_rounds"] > 1
    (written,) = _of(reports, "rollouts")
    assert written["count"] == 2 * data["groups"] > 2 * 4
    json.dumps(data, allow_nan=False)

"""Preference jobs on the tiny model."""

import pytest

from tests.trainer.offline_jobs import MakeJob, curve, of, preference, preference_job, write_rows
from tests.trainer.reports import reports_of, reports_until_paused
from trainer.errors import InvalidData
from trainer.preference.pairs import Pair, with_mismatches
from trainer.preference.run import PreferenceJob

pytestmark = pytest.mark.usefixtures("unproved")

FIGURES = (
    "loss",
    "mean_token_accuracy",
    "mean_preferred_reward",
    "mean_non_preferred_reward",
    "mean_reward_margin",
    "reward_accuracy",
)


@pytest.mark.parametrize("loss", ["dpo", "orpo", "kto"])
def test_a_job_learns_what_is_preferred(make_job: MakeJob, loss: str) -> None:
    reports = reports_of(preference_job(make_job, method={"loss": loss}))
    steps = curve(reports)
    assert {f"train_{name}" for name in FIGURES} <= steps[1].keys()
    assert {f"full_valid_{name}" for name in FIGURES} <= steps[8].keys()
    assert steps[8]["full_valid_mean_reward_margin"] > steps[3]["full_valid_mean_reward_margin"]
    assert steps[8]["full_valid_reward_accuracy"] == 1
    assert steps[8]["train_loss"] < steps[1]["train_loss"]
    final = of(reports, "checkpoint")[-1]
    assert final["final"] and final["step"] == 8
    # Both answers and their ends, 24 times.
    assert final["trained_tokens"] == 24 * 6


def test_the_reference_is_the_model_that_the_job_begins_with(make_job: MakeJob) -> None:
    """Before the first update policy and reference are one: no rewards, the loss of a coin."""
    first = curve(reports_of(preference_job(make_job, name="dpo")))[1]
    assert first["train_loss"] == pytest.approx(0.6931472, abs=1e-6)
    assert first["train_mean_reward_margin"] == pytest.approx(0, abs=1e-5)
    assert first["train_mean_preferred_reward"] == pytest.approx(0, abs=1e-5)
    first = curve(reports_of(preference_job(make_job, name="kto", method={"loss": "kto"})))[1]
    assert first["train_loss"] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("loss", "phases"), [("dpo", ["reference"]), ("orpo", [])])
def test_only_losses_with_a_reference_ask_it(
    make_job: MakeJob, loss: str, phases: list[str]
) -> None:
    reports = reports_of(preference_job(make_job, method={"loss": loss}))
    seen = [r["phase"] for r in of(reports, "phase")]
    assert seen == ["loading", *phases, "dpo", "export"]


@pytest.mark.parametrize("loss", ["dpo", "orpo", "kto"])
def test_a_paused_job_ends_with_the_curve_of_one_that_was_not(make_job: MakeJob, loss: str) -> None:
    method, adapter = {"loss": loss}, {"rank": 4 if loss == "dpo" else 0}
    whole = preference_job(make_job, name="whole", method=method, adapter=adapter)
    expected = curve(reports_of(whole))
    job_dir = preference_job(make_job, name="paused", method=method, adapter=adapter)
    before = reports_until_paused(job_dir, saying="Paused after step 1.")
    (job_dir / of(before, "checkpoint")[-1]["path"]).rename(job_dir / "resume")
    assert curve(before) | curve(reports_of(job_dir)) == expected


@pytest.mark.parametrize("loss", ["dpo", "orpo", "kto"])
def test_micro_batches_change_nothing(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    one = curve(reports_of(preference_job(make_job, name="one", method={"loss": loss})))
    learn = PreferenceJob.learn
    monkeypatch.setattr(PreferenceJob, "learn", lambda job, rows, _budget: learn(job, rows, 1))
    many = curve(reports_of(preference_job(make_job, name="many", method={"loss": loss})))
    for step, data in one.items():
        assert many[step]["train_loss"] == pytest.approx(data["train_loss"], abs=1e-4)
        assert many[step]["grad_norm"] == pytest.approx(data["grad_norm"], rel=1e-2)


def test_mismatched_answers_belong_to_other_prompts() -> None:
    """Files often hold several pairs of one prompt, one after the other."""
    prompts = [0, 1, 1, 1, 2, 0]
    pairs = [Pair([p], [10 + i, 7], [20]) for i, p in enumerate(prompts)]
    found = with_mismatches(pairs, context=2)
    assert [p.mismatched_ids for p in found] == [[11], [14], [14], [14], [15], [11]]
    assert [p.preferred_ids for p in found] == [p.preferred_ids for p in pairs]
    (alone,) = with_mismatches(pairs[:1], context=9)
    assert alone.mismatched_ids == alone.preferred_ids


def test_a_pair_beyond_the_context_is_refused(make_job: MakeJob) -> None:
    job_dir = preference_job(make_job)
    write_rows(job_dir / "data/train.jsonl", [preference("q", "a", "b" * 600)])
    with pytest.raises(InvalidData, match=r"Row 1 of train.jsonl has 6\d\d tokens"):
        reports_of(job_dir)


@pytest.mark.slow
def test_two_processes_learn_what_one_does(make_job: MakeJob) -> None:
    """KTO asks for everything that is shared out: the reference, the distance, gradients."""
    method = {"loss": "kto"}
    one = curve(reports_of(preference_job(make_job, name="one", method=method)))
    two = curve(reports_of(preference_job(make_job, name="two", method=method, processes=2)))
    for step, data in one.items():
        for figure, value in data.items():
            assert two[step][figure] == pytest.approx(value, rel=1e-3, abs=1e-4), figure

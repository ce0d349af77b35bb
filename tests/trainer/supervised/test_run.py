"""Supervised jobs on the tiny model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.offline_jobs import MakeJob, conversation, curve, of, supervised_job, write_rows
from tests.trainer.reports import reports_of, reports_until_paused
from tests.trainer.test_demonstrations import FORGETFUL_TEMPLATE
from trainer.errors import Diverged, InvalidData
from trainer.means import Means
from trainer.supervised.run import SupervisedJob

unproved = pytest.mark.usefixtures("unproved")


@unproved
def test_a_job_learns_and_reports_in_openais_names(make_job: MakeJob) -> None:
    job_dir = supervised_job(make_job)
    reports = reports_of(job_dir)
    assert [r["phase"] for r in of(reports, "phase")] == ["loading", "supervised", "export"]
    steps = curve(reports)
    assert sorted(steps) == list(range(1, 9))
    (start,) = of(reports, "note")
    assert start["message"].startswith("Before training: full validation loss=")
    assert start["data"]["full_valid_loss"] > steps[8]["full_valid_loss"]
    assert {"train_loss", "train_mean_token_accuracy"} <= steps[1].keys()
    # Rows are read in epochs of 8 with 3 a step: the ends are in steps 3, 6 and 8.
    full = [step for step, data in steps.items() if "full_valid_loss" in data]
    assert full == [3, 6, 8]
    assert {"valid_loss", "valid_mean_token_accuracy"} <= steps[2].keys()
    assert {"full_valid_loss", "full_valid_mean_token_accuracy"} <= steps[8].keys()
    assert "valid_loss" not in steps[1]
    assert steps[8]["train_loss"] < 0.6 * steps[1]["train_loss"]
    assert steps[8]["full_valid_loss"] < 0.9 * steps[3]["full_valid_loss"]
    assert steps[8]["full_valid_mean_token_accuracy"] > steps[3]["full_valid_mean_token_accuracy"]


def test_every_epoch_leaves_a_checkpoint_and_the_last_step_the_model(make_job: MakeJob) -> None:
    job_dir = supervised_job(make_job, checkpoint_interval=100)
    reports = reports_of(job_dir)
    checkpoints = of(reports, "checkpoint")
    assert [(c["phase"], c["step"], c["state"]) for c in checkpoints] == [
        ("supervised", 3, True),
        ("supervised", 6, True),
        ("export", 8, False),
    ]
    assert checkpoints[-1]["final"]
    assert checkpoints[-1]["metrics"]["full_valid_loss"] == curve(reports)[8]["full_valid_loss"]
    # "ab" and the end of the turn, 24 times.
    assert checkpoints[-1]["trained_tokens"] == 8 * 3 * 3
    proof = checkpoints[-1]["proof"]
    assert proof["prompts"] == 8 and proof["differs_from_base"]
    assert proof["max_difference"] < proof["tolerance"]


@unproved
@pytest.mark.parametrize("rank", [0, 4])
def test_a_paused_job_ends_with_the_curve_of_one_that_was_not(make_job: MakeJob, rank: int) -> None:
    adapter = {"rank": rank}
    whole = curve(reports_of(supervised_job(make_job, name="whole", adapter=adapter)))
    job_dir = supervised_job(make_job, name="paused", adapter=adapter)
    before = reports_until_paused(job_dir, saying="Paused after step 1.")
    stored = job_dir / of(before, "checkpoint")[-1]["path"]
    stored.rename(job_dir / "resume")
    after = reports_of(job_dir)
    assert of(after, "started")[0]["resumed"] and of(after, "started")[0]["step"] == 1
    assert curve(before) | curve(after) == whole


@unproved
def test_micro_batches_change_nothing(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    one = curve(reports_of(supervised_job(make_job, name="one")))
    learn = SupervisedJob.learn
    monkeypatch.setattr(SupervisedJob, "learn", lambda job, rows, _budget: learn(job, rows, 1))
    many = curve(reports_of(supervised_job(make_job, name="many")))
    for step, data in one.items():
        assert many[step]["train_loss"] == pytest.approx(data["train_loss"], abs=1e-5)
        assert many[step]["grad_norm"] == pytest.approx(data["grad_norm"], rel=1e-3)


@unproved
def test_without_a_validation_file_nothing_is_measured(make_job: MakeJob) -> None:
    data = {"train": "data/train.jsonl", "validation": None, "warm_start": None}
    reports = reports_of(supervised_job(make_job, data=data))
    assert not any("valid" in name for step in curve(reports).values() for name in step)
    assert of(reports, "checkpoint")[-1]["final"]


@unproved
def test_the_loss_is_the_mean_over_all_learnt_tokens(make_job: MakeJob) -> None:
    """A long answer weighs more than a short one, and what is not learnt weighs nothing."""
    method = {"batch_size": 2, "max_steps": 1}
    long, short = conversation("q", "abcdefgh"), conversation("q", "a")
    losses = {}
    for name, rows in {"both": [short, long], "short": [short], "long": [long]}.items():
        job_dir = supervised_job(make_job, name=name, method=method)
        write_rows(job_dir / "data/train.jsonl", rows)
        data = curve(reports_of(job_dir))[1]
        losses[name] = (data["train_loss"], data["trained_tokens"] // (2 // len(rows)))
    (both, tokens), (alone, few), (other, many) = (losses[n] for n in ("both", "short", "long"))
    assert (few, many, tokens) == (2, 9, 11)
    assert both == pytest.approx((few * alone + many * other) / tokens, abs=1e-5)


@unproved
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_tokens": 30}, "max_tokens"),
        ({"max_tokens": 40}, "max_tokens"),
        ({"plateau_window": 3}, "plateau"),
    ],
)
def test_limits_end_a_job_with_its_model(
    make_job: MakeJob, limits: dict[str, Any], reason: str
) -> None:
    # A rate that teaches nothing, so that the validation loss stays where it is.
    method = {"learning_rate": 1e-9, "max_steps": 40}
    reports = reports_of(supervised_job(make_job, limits=limits, method=method))
    (stopped,) = of(reports, "stopped")
    assert stopped["reason"] == reason
    final = of(reports, "checkpoint")[-1]
    assert final["final"] and final["step"] < 40
    *_, last = [*of(reports, "metrics"), *of(reports, "note")[1:]]
    assert last["data"]["full_valid_loss"] == final["metrics"]["full_valid_loss"]


@unproved
def test_an_epoch_is_all_rows_however_many_the_template_makes_of_them(
    make_job: MakeJob, tiny_model: Path, tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(FORGETFUL_TEMPLATE)
    model = {"id": "t", "path": str(tiny_model), "context_tokens": 512}
    job_dir = supervised_job(
        make_job,
        model={**model, "chat_template": str(template)},
        method={"batch_size": 4, "max_steps": 2},
    )
    rows = [conversation(f"row {i}", "ab", "and?", "cd") for i in range(8)]
    write_rows(job_dir / "data/train.jsonl", rows)
    steps = curve(reports_of(job_dir))
    assert steps[2]["epoch"] == 1
    # Two answers of two letters and their ends in each row.
    assert sum(data["trained_tokens"] for data in steps.values()) == 8 * 2 * 3
    assert "full_valid_loss" in steps[2] and "full_valid_loss" not in steps[1]


@unproved
def test_weights_whose_validation_is_not_finite_are_not_kept(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = SupervisedJob.measure

    def broken(job: SupervisedJob, rows: Sequence[Any]) -> list[Means]:
        found = measure(job, rows)
        for row in found if job.progress.step > 0 else []:
            row.totals["loss"] = float("nan")
        return found

    monkeypatch.setattr(SupervisedJob, "measure", broken)
    job_dir = supervised_job(make_job, checkpoint_interval=1)
    with pytest.raises(Diverged, match="validation loss is not finite"):
        reports_of(job_dir)
    assert [path.name for path in (job_dir / "out/checkpoints").iterdir()] == ["supervised-step-1"]


@unproved
def test_a_row_beyond_the_context_is_refused(make_job: MakeJob) -> None:
    job_dir = supervised_job(make_job)
    write_rows(job_dir / "data/train.jsonl", [conversation("q", "a" * 600)])
    with pytest.raises(InvalidData, match=r"Row 1 of train.jsonl has 6\d\d tokens.*context of 512"):
        reports_of(job_dir)


@unproved
def test_a_row_that_the_template_refuses_is_named(
    make_job: MakeJob, tiny_model: Path, tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(
        "{% for m in messages %}{% if m['content'] == 'q' %}{{ raise_exception('No q.') }}"
        "{% endif %}{{ m['content'] }}<|im_end|>{% endfor %}"
    )
    model = {"id": "t", "path": str(tiny_model), "context_tokens": 512}
    job_dir = supervised_job(make_job, model={**model, "chat_template": str(template)})
    write_rows(job_dir / "data/train.jsonl", [conversation("a", "b"), conversation("q", "b")])
    with pytest.raises(InvalidData, match=r"^Row 2 of train.jsonl cannot be shown.*No q\. Change"):
        reports_of(job_dir)


@pytest.mark.slow
@unproved
def test_two_processes_learn_what_one_does(make_job: MakeJob) -> None:
    one = curve(reports_of(supervised_job(make_job, name="one")))
    two = curve(reports_of(supervised_job(make_job, name="two", processes=2)))
    for step, data in one.items():
        for figure, value in data.items():
            assert two[step][figure] == pytest.approx(value, rel=1e-4, abs=1e-5), figure

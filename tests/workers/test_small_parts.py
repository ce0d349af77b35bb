"""Names, estimates and the CSV of a job."""

import csv
import io

from workers.supervisor import names
from workers.supervisor.eta import WINDOW, FinishEstimate
from workers.supervisor.results import step_metrics_csv


def test_final_name_follows_from_the_job_alone() -> None:
    name = names.model_name("base", organization="org", suffix="mine", job_id="ftjob-1")
    assert name == names.model_name("base", organization="org", suffix="mine", job_id="ftjob-1")
    *parts, own = name.split(":")
    assert (parts, len(own)) == (["ft", "base", "org", "mine"], 8)
    assert name != names.model_name("base", organization="org", suffix="mine", job_id="ftjob-2")


def test_name_without_suffix_keeps_its_place() -> None:
    name = names.model_name("base", organization="org", suffix=None, job_id="ftjob-1")
    assert name.startswith("ft:base:org::")


def test_state_lies_beside_the_model() -> None:
    root = names.checkpoint_root("ftjob-1", step=3, fence=2, final=False)
    assert root == "jobs/ftjob-1/checkpoints/3/2"
    assert names.state_prefix(names.model_prefix(root)) == f"{root}/state"


def test_steps_of_a_warm_start_lie_apart() -> None:
    place = {"step": 3, "fence": 2, "final": False}
    warm = names.checkpoint_root("ftjob-1", **place, phase="warm_start")
    assert warm == "jobs/ftjob-1/checkpoints/warm-3/2"
    called = {"organization": "org", "suffix": None, "job_id": "ftjob-1", "step": 3}
    name = names.checkpoint_name("base", **called, phase="warm_start")
    assert name.endswith(":ckpt-step-warm-3")
    assert name.split(":")[-2] != names.checkpoint_name("base", **called).split(":")[-2]


def test_estimate_is_the_mean_step_time_times_what_is_left() -> None:
    estimate = FinishEstimate()
    estimate.phase_began(4, now=1000.0)
    assert estimate.step_ended(5, 10, now=1010.0) == 1060
    assert estimate.step_ended(6, 10, now=1030.0) == 1090
    assert estimate.step_ended(10, 10, now=1100.0) == 1100


def test_estimate_forgets_slow_steps_of_long_ago() -> None:
    estimate = FinishEstimate()
    estimate.phase_began(0, now=0.0)
    estimate.step_ended(1, 100, now=10_000.0)
    for step in range(2, WINDOW + 2):
        finish = estimate.step_ended(step, 100, now=9_999.0 + step)
    assert finish == 10_000 + 100 - 1


def test_csv_has_a_column_for_every_grader_and_empty_cells_for_what_a_step_lacks() -> None:
    first = {
        "step": 1,
        "train_mean_reward": 0.5,
        "timing": {"step": {"sampling": 1.5, "full_iteration": 4.0}},
        "scores": {"graders": [{"name": "a", "type": "string_check", "train_reward_mean": 0.25}]},
        "errors": {
            "graders": [
                {
                    "name": "a",
                    "type": "string_check",
                    "train_other_error_count": 2,
                    "train_other_error_mean": 0.1,
                }
            ]
        },
    }
    steps = [first, {"step": 2, "full_valid_mean_reward": 0.7}]
    text = step_metrics_csv(steps, method="reinforcement").decode()
    one, two = csv.DictReader(io.StringIO(text))
    assert (one["step"], one["sampling_duration"], one["total_duration"]) == ("1", "1.5", "4.0")
    assert one["scores/graders/string_check/a/train_reward_mean"] == "0.25"
    assert one["errors/graders/string_check/a/errors/train_other_error_count"] == "2"
    assert (two["train_mean_reward"], two["full_valid_mean_reward"]) == ("", "0.7")


def test_csv_of_a_job_without_steps_has_its_header() -> None:
    csv = step_metrics_csv([], method="reinforcement").decode()
    assert csv.startswith("step,train_mean_reward,")


def test_csv_of_a_supervised_job_has_openais_columns() -> None:
    steps = [{"step": 1, "train_loss": 2.5, "grad_norm": 3.0}, {"step": 2, "full_valid_loss": 1.5}]
    assert step_metrics_csv(steps, method="supervised").decode().splitlines() == [
        "step,train_loss,train_mean_token_accuracy,valid_loss,valid_mean_token_accuracy,"
        "full_valid_loss,full_valid_mean_token_accuracy",
        "1,2.5,,,,,",
        "2,,,,,1.5,",
    ]
    assert "full_valid_reward_accuracy" in step_metrics_csv([], method="dpo").decode()

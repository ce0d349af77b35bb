"""A job that nothing disturbs: what it leaves behind."""

import csv
import io
import json

from core import manifest
from core.models import File
from tests.workers.lab import STEPS, Lab, expected_curve, processes_of, wait_for
from workers.supervisor.jobdir import final_name
from workers.validation import validate_waiting


def test_undisturbed_job_succeeds_with_every_step_recorded_once(lab: Lab) -> None:
    job_id = lab.queued_job()
    assert lab.run() == job_id
    lab.assert_as_if_undisturbed(job_id)
    job = lab.job(job_id)
    assert (job.step, job.total_steps, job.failed_attempts) == (STEPS, STEPS, 0)
    assert job.trained_tokens == 1000 * STEPS
    assert job.fine_tuned_model == final_name(lab.context, job)
    assert job.fine_tuned_model.startswith("ft:base:org-rft:lab:")


def test_nothing_is_done_when_nothing_is_queued(lab: Lab) -> None:
    assert lab.run() is None


def test_events_use_the_words_of_the_contract(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    messages = lab.messages(job_id)
    rewards = {step: figure for phase, step, figure in expected_curve() if phase == "rl"}
    assert f"Step 1/6 , train mean reward={rewards[1]:.2f}" in messages
    second = next(m for m in messages if m.startswith("Step 2/6 ,"))
    assert ", full validation mean reward=" in second
    assert second.endswith(", full validation mean parse error=0.00")
    assert messages[-2] == f"New fine-tuned model created: {lab.job(job_id).fine_tuned_model}"
    assert messages[-1] == "The job has successfully completed"


def test_final_model_can_be_fetched_by_its_manifest(lab: Lab, tmp_path) -> None:
    job_id = lab.queued_job()
    lab.run()
    final = lab.checkpoints(job_id)[-1]
    assert final.is_final and final.name == lab.job(job_id).fine_tuned_model
    manifest.fetch(lab.context.store, final.object_prefix, tmp_path / "model")
    assert (tmp_path / "model/adapter_config.json").exists()


def test_result_files_are_plain_csv_first_and_the_evaluation_table(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    with lab.context.sessions() as session:
        files = [session.get_one(File, file_id) for file_id in lab.job(job_id).result_files]
    assert [f.filename for f in files] == ["step_metrics.csv", "evaluation.json"]
    assert {f.purpose for f in files} == {"fine-tune-results"}
    table = csv.DictReader(io.StringIO(lab.context.store.get_bytes(files[0].object_key).decode()))
    curve = [("rl", int(row["step"]), float(row["train_mean_reward"])) for row in table]
    assert curve == [point for point in expected_curve() if point[0] == "rl"]
    assert "stages" in json.loads(lab.context.store.get_bytes(files[1].object_key))


def test_rollouts_lie_where_their_rows_say(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    for rollout in lab.rollouts(job_id):
        assert lab.context.store.exists(rollout.object_key)


def test_evaluations_are_metrics_and_events_without_row_results(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    told = [e for e in lab.events(job_id) if e.message.startswith("Evaluation of")]
    assert [e.data["stage"] for e in told] == ["base", "warm_start", "final"]
    for event in told:
        assert "held_out_rows" not in event.data
        assert lab.context.store.exists(event.data["report"])


def test_states_are_gone_once_the_job_has_succeeded(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run()
    assert not any(c.has_state for c in lab.checkpoints(job_id))
    assert not any("/state/" in key for key in lab.context.store.list(f"jobs/{job_id}/"))


def test_stored_checkpoints_are_told_to_the_trainer(lab: Lab) -> None:
    lab.queued_job()
    lab.mishap("step:5", "wait")
    running = lab.start()
    wait_for(lambda: len(lab.remembered("control")) == 3)
    lab.let_go()
    running.join()
    assert lab.remembered("control")[:3] == [
        {"type": "checkpoint_stored", "path": f"out/checkpoints/rl-{step}"} for step in (0, 2, 4)
    ]


def test_trainer_and_grader_see_no_secrets(lab: Lab, monkeypatch) -> None:
    secrets = {
        "RFT_DATABASE_URL": "sqlite:///secret",
        "RFT_S3_SECRET_ACCESS_KEY": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "secret",
        "VLLM_API_KEY": "secret",
        "CELERY_BROKER_URL": "redis://secret",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    lab.queued_job()
    lab.run()
    (run,) = lab.remembered("runs")
    assert "secret" not in json.dumps(run["environment"])
    assert {n for n in run["environment"] if n.startswith("RFT_")} == {
        "RFT_REPORT_FD",
        "RFT_CONTROL_FD",
        "RFT_GRADER_SOCKET",
    }


def test_nothing_runs_and_no_folder_stays_after_a_job(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.script(children=1)
    lab.run()
    assert not processes_of(job_id)
    (child,) = (lab.memory / "children").read_text().split()
    assert int(child) not in processes_of("sleep")
    assert not list((lab.context.settings.data_dir / "jobs").iterdir())


def test_life_of_a_job_on_postgres(postgres_lab: Lab) -> None:
    job_id = postgres_lab.new_job()
    assert validate_waiting(postgres_lab.context, owner="lab") == [job_id]
    postgres_lab.mishap("step:4", "kill")
    postgres_lab.run_all()
    postgres_lab.assert_as_if_undisturbed(job_id)
    assert len(postgres_lab.remembered("runs")) == 2

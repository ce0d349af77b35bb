"""An object store that does not answer: uploads wait, what is stored stays, nothing is lost."""

from core.settings import Settings
from core.store import ObjectStore
from tests.workers.lab import STEPS, Lab, wait_for
from tests.workers.stores import FlakyStore, SlowStore


def test_upload_is_tried_again_and_the_job_does_not_notice(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run(store=FlakyStore(lab.context.store, "/checkpoints/2/", failures=2))
    lab.assert_as_if_undisturbed(job_id)
    assert len(lab.remembered("runs")) == 1


def test_store_that_stays_away_sends_the_job_back_with_all_that_is_stored(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.run(store=FlakyStore(lab.context.store, "/checkpoints/4/", failures=99))
    job = lab.job(job_id)
    assert (job.status, job.failed_attempts) == ("queued", 0)
    assert [c.step for c in lab.checkpoints(job_id) if c.has_state] == [2]
    assert any("does not answer" in m for m in lab.messages(job_id, level="warn"))
    lab.run()
    lab.assert_as_if_undisturbed(job_id)
    assert [run["step"] for run in lab.remembered("runs")] == [0, 2]


def test_store_that_is_away_from_the_start_leaves_the_job_queued(
    lab: Lab, worker_settings: Settings
) -> None:
    job_id = lab.queued_job()
    nowhere = worker_settings.model_copy(update={"s3_endpoint_url": "http://127.0.0.1:9"})
    lab.run(store=ObjectStore.from_settings(nowhere))
    assert lab.job(job_id).status == "queued"
    assert lab.remembered("runs") == []
    lab.run()
    lab.assert_as_if_undisturbed(job_id)


def test_reports_are_read_while_a_checkpoint_is_uploaded(lab: Lab) -> None:
    job_id = lab.queued_job()
    store = SlowStore(lab.context.store)
    running = lab.start(store=store)
    wait_for(lambda: any(phase == "rl" and step == STEPS for phase, step, _ in lab.curve(job_id)))
    assert lab.checkpoints(job_id) == []
    store.go.set()
    running.join()
    lab.assert_as_if_undisturbed(job_id)


def test_deleted_training_file_fails_the_job_by_name(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.context.store.delete_prefix("files")
    lab.run()
    error = lab.job(job_id).error
    assert (error["code"], error["param"]) == ("deleted_training_file", "training_file")
    assert lab.job(job_id).training_file in error["message"]


def test_deleted_starting_model_fails_the_job_by_name(lab: Lab) -> None:
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        session.get_one(type(lab.job(job_id)), job_id).init_from = "ft:base:org::gone"
    lab.run()
    error = lab.job(job_id).error
    assert (error["code"], error["param"]) == ("model_not_found", "model")


def test_full_disk_of_the_worker_pauses_the_job(lab: Lab, monkeypatch) -> None:
    def no_space(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    job_id = lab.queued_job()
    monkeypatch.setattr("workers.supervisor.jobdir._fetch_files", no_space)
    lab.run()
    assert lab.job(job_id).status == "paused"
    assert any("No space is left" in m for m in lab.messages(job_id, level="error"))

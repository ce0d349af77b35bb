"""Runs that are disturbed: nothing is lost, nothing stands twice, and each end says why."""

import threading
import time
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from core import eval_runs
from core.eval_items import Entry
from core.models import Checkpoint, CheckpointPermission, EvalItem, EvalRun, Job, Project
from graders import frames
from tests.evals.bench import EXACT, Lab, numbered, refused, said, wait_for
from workers.evals import bench
from workers.evals.bench import Bench
from workers.evals.ending import RunFailed, TryAgain
from workers.evals.grading import Graders
from workers.evals.run import Manner
from workers.evals.runner import EvalRunner


def test_a_run_goes_on_where_a_stopped_worker_left_it(lab: Lab) -> None:
    run_id = lab.queued_run(content=numbered(200))

    def stop() -> None:
        wait_for(lambda: len(lab.worker.positions(run_id)) >= 32)
        lab.model.open.clear()
        lab.worker.stopping.set()

    lab.worker.meanwhile(stop)
    left = lab.worker.run(run_id)
    assert (left.status, left.lease_owner) == ("queued", None)
    stored = len(lab.worker.positions(run_id))
    assert left.result_counts == {"total": 200, "passed": stored, "failed": 0, "errored": 0}

    lab.worker.stopping.clear()
    lab.model.open.set()
    asked_before = len(lab.model.requests)
    done = lab.finished(run_id)
    assert done.status == "completed"
    assert lab.worker.positions(run_id) == list(range(200))
    assert done.result_counts == {"total": 200, "passed": 200, "failed": 0, "errored": 0}
    assert done.per_model_usage[0]["invocation_count"] == 200
    assert len(lab.model.requests) - asked_before == 200 - stored


def test_a_worker_that_lost_its_lease_stores_nothing_more(lab: Lab) -> None:
    run_id = lab.queued_run(content=numbered(80))
    lab.model.open.clear()

    def take_over() -> None:
        wait_for(lambda: lab.model.requests)
        with lab.worker.sessions.begin() as session:
            late = update(EvalRun).where(EvalRun.id == run_id).values(lease_expires_at=0.0)
            session.execute(late)
            assert eval_runs.reap_expired(session) == [run_id]
        lab.model.open.set()

    lab.worker.meanwhile(take_over)
    left = lab.worker.run(run_id)
    assert (left.status, lab.worker.positions(run_id)) == ("queued", [])
    assert lab.finished(run_id).result_counts["passed"] == 80
    assert lab.worker.positions(run_id) == list(range(80))


def test_a_canceled_run_stops_soon(lab: Lab) -> None:
    run_id = lab.queued_run(content=numbered(50))
    lab.model.open.clear()

    def cancel() -> None:
        wait_for(lambda: lab.model.requests)
        with lab.worker.sessions.begin() as session:
            assert eval_runs.cancel(session, run_id)

    lab.worker.meanwhile(cancel)
    assert lab.worker.run(run_id).status == "canceled"
    # Those that were under way, and at most as many that took their turns before the end.
    assert len(lab.model.requests) <= 2 * lab.worker.settings.eval_concurrency


def test_a_service_that_is_away_for_a_while_is_waited_for(lab: Lab) -> None:
    away = [httpx.ConnectError("refused"), refused(503, "starting"), refused(429, "busy")]
    lab.model.answer = lambda n: away[n - 1] if n <= 3 else said("Hello")
    lab.worker.waits_s = (0.0, 0.0, 0.0)
    assert lab.finished(lab.queued_run()).result_counts["passed"] == 3


def test_a_service_that_stays_away_fails_the_run(lab: Lab) -> None:
    lab.model.answer = lambda _: httpx.ConnectError("refused")
    run = lab.finished(lab.queued_run())
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] == "serving_unavailable"
    assert "rft-server doctor" in run.error["message"]


def test_an_item_that_the_model_refuses_is_an_error_and_no_zero(lab: Lab) -> None:
    lab.model.answer = lambda n: refused(400, "Too long.", "context") if n == 1 else said("Hello")
    run_id = lab.queued_run()
    run = lab.finished(run_id)
    assert run.result_counts == {"total": 3, "passed": 2, "failed": 0, "errored": 1}
    assert run.per_testing_criteria_results[0]["failed"] == 0
    item = lab.worker.items(run_id)[0]
    assert item.sample is not None
    assert item.status == "error"
    assert item.sample["error"] == {"code": "context", "message": "Too long."}
    assert item.results[0]["score"] is None


def test_an_item_that_is_too_large_to_be_graded_is_an_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 5_000)
    content = numbered(2)
    content[0]["item"]["question"] = "x" * 5_000
    run_id = lab.queued_run(content=content)
    assert lab.finished(run_id).result_counts == {
        "total": 2, "passed": 1, "failed": 0, "errored": 1,
    }  # fmt: skip
    error = lab.worker.items(run_id)[0].results[0]["error"]
    assert "too large to be graded" in error["message"]


def test_large_items_are_worked_on_one_at_a_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "WINDOW_CHARS", 1)
    lab.model.open.clear()
    run_id = lab.queued_run()

    def look() -> None:
        wait_for(lambda: lab.model.requests)
        time.sleep(0.1)
        assert len(lab.model.requests) == 1
        lab.model.open.set()

    lab.worker.meanwhile(look)
    assert lab.worker.run(run_id).result_counts["passed"] == 3


def test_items_that_end_a_run_for_different_reasons_end_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_bench: Bench, position: int, _entry: Entry) -> None:
        raise RunFailed("gone", "Gone.") if position == 0 else TryAgain("later")

    monkeypatch.setattr(Bench, "_item", broken)
    run = lab.finished(lab.queued_run())
    assert (run.status, run.error) == ("failed", {"code": "gone", "message": "Gone."})


def test_items_of_deleted_runs_are_forgotten_some_at_a_time(lab: Lab) -> None:
    gone, kept = lab.queued_run(deleted_at=1), lab.queued_run()
    with lab.worker.sessions.begin() as session:
        for run_id in (gone, kept):
            for position in range(5):
                found = {"run_id": run_id, "position": position, "status": "pass"}
                session.add(EvalItem(**found, item={}, results=[]))
    counts = []
    for _ in range(3):
        with lab.worker.sessions.begin() as session:
            counts.append(eval_runs.forget_items(session, limit=3))
    assert counts == [3, 2, 0]
    assert (lab.worker.positions(gone), len(lab.worker.positions(kept))) == ([], 5)


@pytest.mark.parametrize(("status", "code"), [(401, "invalid_api_key"), (404, "model_not_found")])
def test_what_every_item_would_get_fails_the_run(lab: Lab, status: int, code: str) -> None:
    lab.model.answer = lambda _: refused(status, "Not for you.", code)
    run = lab.finished(lab.queued_run())
    assert (run.status, run.error) == ("failed", {"code": code, "message": "Not for you."})


def test_a_model_that_is_gone_fails_the_run(lab: Lab) -> None:
    run = lab.finished(lab.queued_run(model="ft:gone"))
    assert run.error is not None
    assert (run.status, run.error["code"]) == ("failed", "model_not_found")


def test_a_run_that_no_worker_survives_is_given_up(lab: Lab) -> None:
    run = lab.finished(lab.queued_run(attempts=5))
    assert run.error is not None
    assert (run.status, run.error["code"]) == ("failed", "worker_lost")


def test_a_trained_model_of_another_project_answers_when_it_is_shared(lab: Lab) -> None:
    with lab.worker.sessions.begin() as session:
        session.add(Project(id="other", name="other"))
        session.flush()
        owned: dict[str, Any] = {"project_id": "other"}
        job = Job(model="base-1-2024", method={}, training_file="f", seed=1, **owned)
        session.add(job)
        session.flush()
        session.add(
            Checkpoint(
                job_id=job.id,
                phase="rl",
                step=1,
                name="ft:theirs",
                object_prefix="models/x",
                kind="adapter",
                metrics={},
                is_final=True,
                has_state=False,
                **owned,
            )
        )
    assert lab.finished(lab.queued_run(model="ft:theirs")).status == "failed"
    with lab.worker.sessions.begin() as session:
        given = CheckpointPermission(model="ft:theirs", grantee_id=lab.project_id, **owned)
        session.add(given)
    assert lab.finished(lab.queued_run(model="ft:theirs")).result_counts["passed"] == 3
    assert lab.model.headers[0] == {
        "base": "base-1-2024", "artifact": "models/x", "kind": "adapter",
    }  # fmt: skip


def test_a_grader_process_that_dies_is_started_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = lab.queued_run(content=numbered(5))
    grade, calls = Graders.grade, 0

    async def dying(graders: Graders, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise TryAgain("The grader process is gone: it closed the connection.")
        return await grade(graders, *given)

    monkeypatch.setattr(Graders, "grade", dying)
    assert lab.finished(run_id).result_counts["passed"] == 5
    assert lab.worker.run(run_id).fence > 2


def test_a_runner_takes_what_is_queued_in_threads_of_its_own(lab: Lab) -> None:
    runs = [lab.queued_run() for _ in range(3)]
    stopping = threading.Event()
    runner = EvalRunner(
        lambda: lab.worker.context,
        owner=lambda: "test",
        stopping=stopping,
        manner=Manner((), lab.model.transport),
    )
    for _ in range(4):
        runner.poke()
    wait_for(lambda: all(lab.worker.run(run_id).status == "completed" for run_id in runs))


def test_two_workers_share_the_queue(postgres_lab: Lab) -> None:
    runs = [postgres_lab.queued_run(EXACT) for _ in range(6)]
    threads = [threading.Thread(target=postgres_lab.worker.work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for run_id in runs:
        assert postgres_lab.worker.run(run_id).result_counts["passed"] == 3
        assert postgres_lab.worker.run(run_id).attempts == 1
    with postgres_lab.worker.sessions() as session:
        assert session.scalar(select(EvalRun.id).where(EvalRun.status != "completed")) is None

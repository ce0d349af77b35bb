"""A store that does not answer and a disk that is full: told once, and the job waits its turn."""

import errno
from collections.abc import Callable

import pytest

from core.errors import StoreUnreachable
from core.settings import Settings
from core.store import ObjectStore
from tests.workers.lab import Lab
from tests.workers.validating import validate
from workers.context import Context
from workers.validation import validate_waiting


def without_store(lab: Lab, settings: Settings) -> Context:
    """The lab's context with a store that does not answer."""
    nowhere = settings.model_copy(update={"s3_endpoint_url": "http://127.0.0.1:9"})
    context = lab.context
    return Context(
        context.settings, context.sessions, ObjectStore.from_settings(nowhere), context.registry
    )


def failing(code: int) -> Callable[..., None]:
    """A download that finds the disk in trouble."""

    def fetch(*_arguments: object, **_options: object) -> None:
        raise OSError(code, "test")

    return fetch


def is_free(lab: Lab, job_id: str) -> bool:
    """Whether any worker may validate the job at once."""
    job = lab.job(job_id)
    return (job.status, job.lease_owner, job.lease_expires_at) == ("validating_files", None, None)


def test_unreachable_store_leaves_the_job_to_the_next_try_and_is_told_once(
    lab: Lab, worker_settings: Settings
) -> None:
    job_id = lab.new_job()
    context = without_store(lab, worker_settings)
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            validate_waiting(context, owner="lab")
        assert is_free(lab, job_id)
    begun, told = lab.messages(job_id)
    assert begun.startswith("Validating training file")
    assert told.startswith("Validation waits: The object store at http://127.0.0.1:9 does not")
    assert lab.messages(job_id, level="warn") == [told]
    assert validate(lab) == [job_id]
    assert lab.messages(job_id)[2:] == ["Files validated, moving job to queued state"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_gives_the_job_back_and_names_the_way_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    job_id = lab.new_job()
    with monkeypatch.context() as patch:
        patch.setattr("workers.checks.fetch_file", failing(code))
        for _ in range(2):
            with pytest.raises(OSError):
                validate(lab)
            assert is_free(lab, job_id)
    (told,) = lab.messages(job_id, level="warn")
    assert told.startswith(
        f"Validation waits: no space is left under {lab.context.settings.data_dir}"
    )
    assert "free some" in told
    assert validate(lab) == [job_id]


def test_each_cause_is_told(
    lab: Lab, worker_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = lab.new_job()
    with pytest.raises(StoreUnreachable):
        validate_waiting(without_store(lab, worker_settings), owner="lab")
    monkeypatch.setattr("workers.checks.fetch_file", failing(errno.ENOSPC))
    with pytest.raises(OSError):
        validate(lab)
    assert len(lab.messages(job_id, level="warn")) == 2

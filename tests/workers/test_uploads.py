"""The order and the failures of uploads."""

import threading

import pytest

from core.errors import StaleFence, StoreUnreachable
from workers.supervisor.uploads import Uploads


def drain(uploads: Uploads) -> None:
    uploads.drain(keep_on=lambda: True, poll_s=0.001)


def failing(times: int, done: list[str], name: str):
    left = [times]

    def upload() -> None:
        if left[0]:
            left[0] -= 1
            raise StoreUnreachable("http://store", "test")
        done.append(name)

    return upload


def test_uploads_run_in_order_even_when_one_has_to_be_repeated() -> None:
    done: list[str] = []
    uploads = Uploads((0, 0))
    uploads.submit(failing(2, done, "a"))
    uploads.submit(failing(0, done, "b"))
    drain(uploads)
    uploads.close()
    assert done == ["a", "b"]


def test_nothing_is_stored_after_a_failure() -> None:
    done: list[str] = []
    uploads = Uploads((0, 0))
    uploads.submit(failing(3, done, "a"))
    uploads.submit(failing(0, done, "b"))
    with pytest.raises(StoreUnreachable):
        drain(uploads)
    drain(uploads)
    uploads.close()
    assert done == []


def test_other_errors_are_not_repeated() -> None:
    calls: list[int] = []

    def stale() -> None:
        calls.append(1)
        raise StaleFence("ftjob-1", 2)

    uploads = Uploads((0, 0))
    uploads.submit(stale)
    with pytest.raises(StaleFence):
        drain(uploads)
    uploads.close()
    assert calls == [1]


def test_closing_ends_the_waiting_for_the_store() -> None:
    uploads = Uploads((600,))
    tried = threading.Event()

    def upload() -> None:
        tried.set()
        raise StoreUnreachable("http://store", "test")

    uploads.submit(upload)
    assert tried.wait(10)
    uploads.close()


def test_drain_stops_when_the_job_is_lost() -> None:
    go = threading.Event()
    uploads = Uploads(())
    uploads.submit(lambda: go.wait(60) and None)
    uploads.drain(keep_on=lambda: False)
    go.set()
    uploads.close()


def test_closing_leaves_an_upload_alone_once_nobody_may_wait() -> None:
    go, done = threading.Event(), threading.Event()

    def upload() -> None:
        go.wait(60)
        done.set()

    uploads = Uploads(())
    uploads.submit(upload)
    assert not uploads.drain(keep_on=lambda: False)
    uploads.close(keep_on=lambda: False)
    assert not done.is_set()
    go.set()
    assert done.wait(60)

"""Errors travel between processes, and each has what an answer needs."""

import pickle

import pytest

from core import errors
from core.errors import RftError


def every_kind(kind: type[RftError] = RftError) -> list[type[RftError]]:
    return [kind, *(below for each in kind.__subclasses__() for below in every_kind(each))]


@pytest.mark.parametrize(
    "error",
    [
        errors.IllegalTransition("ftjob-a", "queued", "succeeded"),
        errors.StaleFence("ftjob-a", 3),
        errors.JobNotFound("ftjob-a"),
        errors.StoreUnreachable("http://x", "refused"),
        errors.ManifestMismatch("jobs/a", "b is missing"),
        errors.InvalidRequest("Wrong.", code="c", param="p"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pickle(error: RftError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_the_drawn_tree_is_complete() -> None:
    lines = [line.split() for line in (errors.__doc__ or "").splitlines()]
    drawn = {words[i]: words[i + 1 : i + 2] for words in lines for i in range(len(words))}
    here = [kind for kind in every_kind() if kind.__module__ == "core.errors"]
    assert len(here) > 10
    for kind in here:
        expected = [] if kind is RftError else [str(kind.status)]
        assert drawn.get(kind.__name__) == expected, kind


def test_the_type_follows_the_status() -> None:
    assert errors.JobNotFound("a").type == "invalid_request_error"
    assert errors.StoreUnreachable("a", "b").type == "server_error"

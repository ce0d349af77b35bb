"""Pages neither repeat nor lose rows, whatever happens between them."""

from collections.abc import Callable

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.events import add_event
from core.methods import Method, normalise
from core.models import Job
from tests.api.examples import METHOD, add_checkpoint, job_body, upload

JOBS = "/v1/fine_tuning/jobs"


@pytest.fixture
def make_jobs(client: openai.OpenAI, sessions: sessionmaker[Session]) -> Callable[..., list[str]]:
    """Make jobs with the given creation times and return their ids."""
    file = upload(client)
    project_id = client.files.with_raw_response.list().headers["openai-project"]

    def make(*created_at: int, meta: dict[str, str] | None = None) -> list[str]:
        with sessions.begin() as session:
            jobs = [
                Job(
                    project_id=project_id,
                    model="base-1-2024",
                    method=normalise(Method.model_validate(METHOD)),
                    training_file=file.id,
                    seed=1,
                    meta=meta,
                    created_at=at,
                )
                for at in created_at
            ]
            session.add_all(jobs)
            session.flush()
            return [job.id for job in jobs]

    return make


def test_jobs_come_newest_first_in_pages(
    client: openai.OpenAI, make_jobs: Callable[..., list[str]]
) -> None:
    ids = make_jobs(*range(100, 125))
    assert [job.id for job in client.fine_tuning.jobs.list(limit=7)] == ids[::-1]
    first = client.fine_tuning.jobs.list()
    assert len(first.data) == 20 and first.has_more


def test_jobs_of_one_second_come_newest_first_and_once(
    client: openai.OpenAI, make_jobs: Callable[..., list[str]]
) -> None:
    ids = make_jobs(*[100] * 25)
    seen = [job.id for job in client.fine_tuning.jobs.list(limit=4)]
    assert seen == ids[::-1]


def test_jobs_made_between_two_pages_shift_nothing(
    client: openai.OpenAI, make_jobs: Callable[..., list[str]]
) -> None:
    ids = make_jobs(*range(100, 110))
    first = client.fine_tuning.jobs.list(limit=5)
    make_jobs(*range(200, 210))
    second = first.get_next_page()
    assert [job.id for job in [*first.data, *second.data]] == ids[::-1]
    assert not second.has_more


def test_files_deleted_while_following_the_pages_end_the_walk(client: openai.OpenAI) -> None:
    made = {upload(client).id for _ in range(7)}
    deleted = set()
    for file in client.files.list(limit=2):
        client.files.delete(file.id)
        deleted.add(file.id)
    assert deleted == made


def test_files_in_both_orders(client: openai.OpenAI) -> None:
    made = [upload(client).id for _ in range(5)]
    down = [file.id for file in client.files.list(limit=2, order="desc")]
    up = [file.id for file in client.files.list(limit=2, order="asc")]
    assert (up, down) == (made, made[::-1])


def test_events_in_pages(client: openai.OpenAI, sessions: sessionmaker[Session]) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    with sessions.begin() as session:
        for number in range(45):
            add_event(session, job.id, str(number))
    walked = [event.message for event in client.fine_tuning.jobs.list_events(job.id)]
    assert walked == [*map(str, range(44, -1, -1)), f"Created fine-tuning job: {job.id}"]


def test_checkpoints_in_pages(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session]
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    ids = [add_checkpoint(sessions, job.id, step, name=f"ft:{step}") for step in range(12)]
    first = http.get(f"{JOBS}/{job.id}/checkpoints").json()
    assert len(first["data"]) == 10 and first["has_more"]
    assert (first["first_id"], first["last_id"]) == (ids[11], ids[2])
    walked = [each.id for each in client.fine_tuning.jobs.checkpoints.list(job.id, limit=5)]
    assert walked == ids[::-1]


@pytest.mark.parametrize("limit", [0, -1, 10**30])
def test_any_limit_is_answered(client: openai.OpenAI, http: httpx.Client, limit: int) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    for path in (JOBS, f"{JOBS}/{job.id}/events", f"{JOBS}/{job.id}/checkpoints", "/v1/files"):
        assert http.get(path, params={"limit": limit}).status_code == 200


def test_an_unknown_cursor_gives_an_empty_last_page(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    for path in (JOBS, f"{JOBS}/{job.id}/events", f"{JOBS}/{job.id}/checkpoints", "/v1/files"):
        page = http.get(path, params={"after": "after", "limit": 0}).json()
        assert page["data"] == [] and page["has_more"] is False


def test_metadata_filters(
    client: openai.OpenAI, http: httpx.Client, make_jobs: Callable[..., list[str]]
) -> None:
    odd = "a b.c'd[0]"
    (without,) = make_jobs(100)
    (team_a,) = make_jobs(101, meta={"team": "a", odd: "x&y=1"})
    (team_b,) = make_jobs(102, meta={"team": "b", "empty": ""})

    def listed(metadata: dict[str, str]) -> list[str]:
        return [job.id for job in client.fine_tuning.jobs.list(metadata=metadata)]

    assert listed({"team": "a"}) == [team_a]
    assert listed({odd: "x&y=1"}) == [team_a]
    assert listed({"team": "a", odd: "x&y=1"}) == [team_a]
    assert listed({"team": "b", odd: "x&y=1"}) == []
    assert listed({"empty": ""}) == [team_b]
    assert listed({"nothing": ""}) == []
    only_plain = http.get(JOBS, params={"metadata": "null"}).json()["data"]
    assert [job["id"] for job in only_plain] == [without]
    both = {"metadata": "null", "metadata[team]": "a"}
    assert http.get(JOBS, params=both).status_code == 400


@pytest.mark.parametrize("path", [JOBS, "/v1/files", "/v1/organization/api_keys"])
def test_an_empty_after_is_the_first_page(
    http: httpx.Client, make_jobs: Callable[..., list[str]], path: str
) -> None:
    make_jobs(100)
    first = http.get(path).json()
    assert first["data"]
    assert http.get(f"{path}?after=").json() == first
    assert http.get(f"{path}?after=&limit=20").json() == first

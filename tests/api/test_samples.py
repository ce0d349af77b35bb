"""Samples: found by every filter, page after page, as a group, and by what they say."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete
from sqlalchemy.orm import Session, sessionmaker

from api.services import sample_texts, samples
from api.services.samples import Filters, Order
from api.tenancy import Tenant
from core.db import make_engine, session_factory
from core.keys import create_project
from core.models import Job, Rollout, Sample
from tests.api.examples import GRADER, error_of, job_body, reinforcement, upload
from tests.api.rollouts import add_rollouts, failure, line
from tests.fakes.memory_store import MemoryStore
from tests.properties import property_test

CHILDREN = ("a", "d", "both")
MULTI = {
    "type": "multi",
    "name": "both",
    "graders": {name: {**GRADER, "name": name} for name in CHILDREN},
    "calculate_output": "0.5 * a + 0.5 * both",
}


def scored(value: float, **sub_scores: float) -> dict[str, Any]:
    return {"outcome": "score", "value": value, "sub_scores": sub_scores, "notes": []}


def steps() -> list[tuple[int, str, list[dict[str, Any]]]]:
    """Two steps with two groups of two, and the validation samples of the second."""
    note = {"grader": "a", "kind": "sample_parse_error", "detail": "d"}
    return [
        (
            1,
            "train",
            [
                line(4, "one apple", group=0, outcome=scored(0.1, a=0.2, both=0.9)),
                line(4, "two PEARS", 0.9, group=0, truncated=True),
                line(7, "three", None, group=1),
                line(7, "four", group=1, outcome=failure("sample_parse_error", "a", both=0.4)),
            ],
        ),
        (
            2,
            "train",
            [
                line(4, "five apples", 1.0, group=0),
                line(4, "six", group=0, outcome={**scored(0.0), "notes": [note]}),
                line(9, "seven", group=1, outcome=failure("formula_runtime", "both")),
                line(9, "eight", group=1, outcome=scored(0.3, d=0.7)),
            ],
        ),
        (2, "valid", [line(0, "nine apples", 0.6, advantage=None)]),
    ]


@pytest.fixture
def job_id(
    client: openai.OpenAI, http: httpx.Client, sessions: sessionmaker[Session], store: MemoryStore
) -> str:
    """A job with a multi grader and nine samples."""
    body = job_body(upload(client).id, method=reinforcement(grader=MULTI))
    # Not through the official client, whose types have no place for several graders.
    made: str = http.post("/v1/fine_tuning/jobs", json=body).json()["id"]
    with sessions.begin() as session:
        for step, split, lines in steps():
            add_rollouts(session, store, made, step, lines, split=split)
    return made


@pytest.fixture
def path(job_id: str) -> str:
    return f"/v1/fine_tuning/jobs/{job_id}/samples"


def read(http: httpx.Client, path: str, **params: Any) -> dict[str, Any]:
    answer = http.get(path, params=params or None)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def texts(body: dict[str, Any]) -> list[str]:
    return [each["preview"].split()[0] for each in body["data"]]


def test_the_newest_step_comes_first(http: httpx.Client, path: str) -> None:
    body = read(http, path)
    assert texts(body) == [
        *("nine", "eight", "seven", "six", "five", "four", "three", "two", "one")
    ]
    assert (body["has_more"], body["next_after"], body["searched"]) == (False, None, None)
    assert (body["waiting_steps"], body["lost_steps"]) == (0, 0)
    failed = body["data"][2]
    assert (failed["outcome"], failed["reward"]) == ("failure", None)
    assert (failed["failure"], failed["failed_grader"]) == ("formula_runtime", "both")
    assert texts(read(http, path, order="asc", limit=2)) == ["one", "two"]


FILTERS = [
    ("step=1", "four three two one"),
    ("min_step=2&split=train", "eight seven six five"),
    ("max_step=1&group=1", "four three"),
    ("row=4", "six five two one"),
    ("min_reward=0.6", "nine five two"),
    ("min_reward=0.1&max_reward=0.3", "eight one"),
    ("outcome=abstain", "three"),
    ("outcome=failure", "seven four"),
    ("outcome=score&step=1", "two one"),
    ("failure=any", "seven six four"),
    ("failure=sample_parse_error", "six four"),
    ("failure=any&grader=a", "six four"),
    ("failure=any&grader=both", "seven"),
    ("grader=a", "one"),
    ("grader=both.both&min_score=0.5", "one"),
    ("grader=both.both&max_score=0.5", "four"),
    ("grader=both&min_score=1", "five"),
    ("grader=d&min_score=0.7", "eight"),
    ("truncated=true", "two"),
    ("truncated=false&step=1", "four three one"),
    ("order_by=reward", "five two nine eight one six"),
    ("order_by=reward&order=asc&limit=2", "six one"),
]


def test_every_filter(http: httpx.Client, path: str) -> None:
    for query, found in FILTERS:
        assert texts(read(http, f"{path}?{query}")) == found.split(), query


REFUSED = [
    ("grader=bot", "Did you mean 'both'?"),
    ("failure=sample_parse_eror", "Did you mean 'sample_parse_error'?"),
    ("min_score=1", "name it in 'grader'"),
    ("min_rewards=1", "Did you mean 'min_reward'?"),
    ("outcome=bad", "outcome"),
    ("min_reward=nan", "min_reward"),
    ("text=", "text"),
]


def test_what_cannot_be_read_is_refused(http: httpx.Client, path: str) -> None:
    for query, said in REFUSED:
        assert said in error_of(http.get(f"{path}?{query}"), 400)["message"], query


def test_one_sample_shows_everything(http: httpx.Client, path: str) -> None:
    listed = read(http, path, row=9, limit=1)["data"][0]
    shown = read(http, f"{path}/{listed['id']}")
    assert shown.items() >= listed.items()
    assert shown["text"] == "eight"
    assert shown["messages"] == [{"role": "user", "content": "row 9"}]
    assert shown["token_ids"] == [1, 2, 3] and shown["logprobs"] == [-0.1, -0.2, -0.3]
    assert shown["outcome_detail"]["sub_scores"] == {"d": 0.7}
    assert shown["traces"][0]["grader"] == "exact"
    error = error_of(http.get(f"{path}/sample_none"), 404)
    assert error["code"] == "sample_not_found"


def test_a_group_shows_all_completions_of_a_prompt(http: httpx.Client, path: str) -> None:
    listed = read(http, path, step=1, group=0, limit=1)["data"][0]
    group = read(http, f"{path}/{listed['id']}/group")
    assert (group["step"], group["group"], group["row"]) == (1, 0, 4)
    assert [each["text"] for each in group["samples"]] == ["one apple", "two PEARS"]
    assert [each["advantage"] for each in group["samples"]] == [0.25, 0.25]
    assert group["rewards"] == {"scored": 2, "mean": 0.5, "lowest": 0.1, "highest": 0.9}
    assert group["messages"] == [{"role": "user", "content": "row 4"}]


def test_text_is_found_whatever_its_case(http: httpx.Client, path: str) -> None:
    assert texts(read(http, path, text="APPLE")) == ["nine", "five", "one"]
    body = read(http, path, text="pears", split="train")
    assert texts(body) == ["two"]
    assert body["searched"] == {"samples": 8, "files": 2, "unreadable": 0, "complete": True}
    assert texts(read(http, path, text="apple", min_reward=0.5)) == ["nine", "five"]


def test_a_search_says_how_far_it_looked_and_goes_on(
    http: httpx.Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_texts, "MAX_FILES", 1)
    first = read(http, path, text="pears")
    assert first["data"] == [] and first["has_more"]
    assert first["searched"] == {"samples": 1, "files": 1, "unreadable": 0, "complete": False}
    found, after = [], first["next_after"]
    while after is not None:
        body = read(http, path, text="pears", after=after)
        found += texts(body)
        after = body["next_after"]
    assert found == ["two"]
    one = read(http, path, text="apple", limit=1)
    assert texts(one) == ["nine"] and one["next_after"] == one["last_id"]


def test_a_text_that_is_gone_is_said_so(http: httpx.Client, path: str, store: MemoryStore) -> None:
    sample = read(http, path, step=1, limit=1)["data"][0]
    for key in [key for key in store.objects if "/rollouts/1-" in key]:
        store.delete(key)
    for end in ("", "/group"):
        error = error_of(http.get(f"{path}/{sample['id']}{end}"), 404)
        assert error["code"] == "sample_text_gone"
    assert read(http, path, text="apple")["searched"]["unreadable"] == 4


def test_samples_that_cannot_be_found_yet_are_counted(
    http: httpx.Client, path: str, job_id: str, sessions: sessionmaker[Session], store: MemoryStore
) -> None:
    with sessions.begin() as session:
        add_rollouts(session, store, job_id, 3, [line(1, "ten")], indexed=False)
        session.add(
            Rollout(
                job_id=job_id, step=4, split="train", object_key="x", count=1, index_state="lost"
            )
        )
    body = read(http, path, step=3)
    assert (body["data"], body["waiting_steps"], body["lost_steps"]) == ([], 1, 1)


def walk(tenant: Tenant, job: Job, order: Order, limit: int, between: Any) -> list[str]:
    """Follow the pages to their end; `between` changes things after each."""
    seen, after = [], None
    while True:
        place = Order(by=order.by, descending=order.descending, after=after)
        page = samples.list_samples(tenant, job, Filters(), place, limit=limit)
        seen += [row.id for row in page.rows]
        if not page.has_more:
            return seen
        after = seen[-1]
        between()


@pytest.fixture
def many(factory: sessionmaker[Session]) -> Iterator[tuple[Tenant, Job]]:
    """A job with 60 samples of many equal rewards, on either database."""
    with factory.begin() as session:
        project = create_project(session, "p").id
        job = Job(
            project_id=project,
            model="m",
            method=reinforcement(),
            training_file="file-1",
            seed=1,
        )
        session.add(job)
        session.flush()
        for step in range(10, 20):
            lines = [line(row, "x", row % 3 / 2) for row in range(6)]
            add_rollouts(session, MemoryStore(), job.id, step, lines)
    with factory() as session:
        yield Tenant(session=session, project_id=project), job


@pytest.mark.parametrize("by", ["step", "reward"])
@pytest.mark.parametrize("descending", [True, False])
def test_pages_stay_whole_while_steps_are_added(
    many: tuple[Tenant, Job], by: Any, descending: bool
) -> None:
    tenant, job = many
    order = Order(by=by, descending=descending, after=None)
    wanted = walk(tenant, job, order, 200, lambda: None)
    assert len(set(wanted)) == 60
    added = iter([30, 5, 31, 4, 32, 3, *range(100, 200)])

    def insert() -> None:
        step = next(added)
        add_rollouts(
            tenant.session, MemoryStore(), job.id, step, [line(9, "new", 0.5), line(9, "new", 0.0)]
        )

    seen = walk(tenant, job, order, 7, insert)
    assert len(seen) == len(set(seen))
    assert [each for each in seen if each in set(wanted)] == wanted


@pytest.fixture(scope="module")
def one_job(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A job without samples, for many examples."""
    path = tmp_path_factory.mktemp("samples") / "rft.db"
    shutil.copy(migrated_sqlite, path)
    engine = make_engine(f"sqlite:///{path}")
    with session_factory(engine)() as session:
        project = create_project(session, "p").id
        job = Job(project_id=project, model="m", method=reinforcement(), training_file="f", seed=1)
        session.add(job)
        session.flush()
        yield Tenant(session=session, project_id=project), job
    engine.dispose()


@property_test
@given(
    rewards=st.lists(st.sampled_from([None, 0.0, 0.5, 1.0]), max_size=25), limit=st.integers(1, 9)
)
def test_pages_hold_every_sample_once(
    one_job: tuple[Tenant, Job],
    rewards: list[float | None],
    limit: int,
) -> None:
    tenant, job = one_job
    tenant.session.execute(delete(Sample).where(Sample.job_id == job.id))
    tenant.session.execute(delete(Rollout).where(Rollout.job_id == job.id))
    tenant.session.expire_all()
    lines = [line(row, "x", reward) for row, reward in enumerate(rewards)]
    add_rollouts(tenant.session, MemoryStore(), job.id, 1, lines)
    for by in ("step", "reward"):
        seen = walk(tenant, job, Order(by=by, descending=True, after=None), limit, lambda: None)
        shown = [each for each in rewards if by == "step" or each is not None]
        assert len(seen) == len(set(seen)) == len(shown)

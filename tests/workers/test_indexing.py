"""Samples of jobs from before they could be searched become searchable."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.keys import create_project
from core.models import Job, Rollout, Sample
from core.registry import Registry
from core.settings import Settings
from tests.api.rollouts import add_rollouts, failure, line
from tests.fakes.memory_store import MemoryStore
from workers.context import Context
from workers.indexing import index_waiting


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def context(
    settings: Settings, factory: sessionmaker[Session], store: MemoryStore
) -> Iterator[Context]:
    with factory.begin() as session:
        project_id = create_project(session, "p").id
        session.add(
            Job(
                id="ftjob-1",
                project_id=project_id,
                model="m",
                method={},
                training_file="f",
                seed=1,
            )
        )
    yield Context(settings, factory, store, Registry([], source=settings.models_file))


def states(context: Context) -> dict[int, str]:
    with context.sessions() as session:
        return {row.step: row.index_state for row in session.scalars(select(Rollout))}


def test_rows_are_made_from_the_stored_file(context: Context, store: MemoryStore) -> None:
    lines = [
        line(3, "x" * 500 + "\0", 0.5, truncated=True),
        line(3, "y", None),
        line(8, "z", outcome=failure("formula_runtime", "g", a=0.5)),
    ]
    with context.sessions.begin() as session:
        add_rollouts(session, store, "ftjob-1", 1, lines, indexed=False)
    assert index_waiting(context) == 1
    with context.sessions() as session:
        first, second, third = session.scalars(select(Sample).order_by(Sample.position))
    assert (first.row, first.group, first.reward, first.truncated) == (3, 0, 0.5, True)
    assert (first.tokens, len(first.preview), first.failure) == (3, 200, None)
    assert (second.group, second.reward, second.failure) == (0, None, None)
    assert (third.group, third.failure, third.failed_grader) == (1, "formula_runtime", "g")
    assert third.sub_scores == {"a": 0.5}
    assert states(context) == {1: "indexed"}
    assert index_waiting(context) == 0


def test_a_damaged_file_is_lost_and_holds_up_no_other(context: Context, store: MemoryStore) -> None:
    with context.sessions.begin() as session:
        for step in (1, 2, 3, 4):
            add_rollouts(session, store, "ftjob-1", step, [line(step, "x")], indexed=False)
        keys = {row.step: row.object_key for row in session.scalars(select(Rollout))}
    store.put_bytes(keys[1], b"no archive")
    store.put_bytes(keys[2], store.objects[keys[2]][:-4])
    store.delete(keys[3])
    index_waiting(context)
    assert states(context) == {1: "lost", 2: "lost", 3: "lost", 4: "indexed"}
    with context.sessions() as session:
        assert [row.step for row in session.scalars(select(Sample))] == [4]


def test_a_store_that_is_down_is_asked_again(context: Context, store: MemoryStore) -> None:
    with context.sessions.begin() as session:
        add_rollouts(session, store, "ftjob-1", 1, [line(1, "x")], indexed=False)
    store.down = True
    index_waiting(context)
    assert states(context) == {1: "waiting"}
    store.down = False
    index_waiting(context)
    assert states(context) == {1: "indexed"}

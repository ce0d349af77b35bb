"""Events hold what anybody writes, and make nobody wait who does not write to the job."""

from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from core.events import add_event
from core.models import Event, Metric
from tests.core.jobs import MakeJob


def test_texts_within_data_are_made_storable(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    data: dict[str, Any] = {"a\ud800": ["\x00", {"b": ("\udfff", 1, None)}]}
    with factory.begin() as session:
        add_event(session, make_job(), "m", data=data)
    with factory() as session:
        event = session.scalars(select(Event)).one()
    assert event.data == {"a?": ["\N{REPLACEMENT CHARACTER}", {"b": ["?", 1, None]}]}


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_rows_that_refer_to_the_job_do_not_wait_for_an_event(
    factory: sessionmaker[Session], make_job: MakeJob
) -> None:
    job_id = make_job()
    with factory.begin() as writing:
        add_event(writing, job_id, "not yet committed")
        writing.flush()
        with factory.begin() as session:
            session.execute(text("SET LOCAL lock_timeout = '2s'"))
            session.add(Metric(job_id=job_id, phase="rl", step=1, data={}))

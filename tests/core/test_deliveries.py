"""Deliveries: made once, held by one, tried for 72 hours, replayed."""

import threading
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core.clock import now
from core.deliveries import (
    JITTER,
    KEPT_S,
    LAST_WAIT_S,
    TRIED_S,
    WAITS_S,
    abandon,
    fan_out,
    record,
    replay,
    replay_failed,
    trim_deliveries,
    wait_s,
)
from core.delivery_claims import PER_ENDPOINT, PER_PROJECT, Claimed, claim_due
from core.keys import create_project
from core.models import AuditEntry, Outbox, WebhookDelivery, WebhookEndpoint
from core.queue import enqueue_webhook
from core.webhooks import Outcome, new_secret

TYPE = "fine_tuning.job.succeeded"
TAKEN, REFUSED = Outcome(200), Outcome(500, "status 500.")


def endpoint(factory: sessionmaker[Session], project_id: str, **columns: Any) -> str:
    values = {
        "name": "hook",
        "url": "https://hook.test/",
        "event_types": [TYPE],
        "secrets": [{"secret": new_secret(), "expires_at": None}],
    }
    with factory.begin() as session:
        row = WebhookEndpoint(project_id=project_id, **{**values, **columns})
        session.add(row)
        session.flush()
        return row.id


def happen(
    factory: sessionmaker[Session], project_id: str, count: int = 1, type: str = TYPE
) -> None:
    with factory.begin() as session:
        for number in range(count):
            enqueue_webhook(session, project_id, type, f"ftjob-{number}")
    with factory.begin() as session:
        assert fan_out(session) == count


def claim(factory: sessionmaker[Session], **options: Any) -> list[Claimed]:
    with factory.begin() as session:
        return claim_due(session, **options)


def settle(factory: sessionmaker[Session], claimed: Claimed, outcome: Outcome) -> str | None:
    with factory.begin() as session:
        return record(session, claimed, outcome)


def deliveries(factory: sessionmaker[Session]) -> list[WebhookDelivery]:
    with factory() as session:
        query = select(WebhookDelivery).order_by(WebhookDelivery.seq)
        return list(session.scalars(query))


def change(factory: sessionmaker[Session], **columns: Any) -> None:
    with factory.begin() as session:
        session.execute(update(WebhookDelivery).values(**columns))


def the_endpoint(factory: sessionmaker[Session]) -> WebhookEndpoint:
    with factory() as session:
        return session.scalars(select(WebhookEndpoint)).one()


def test_an_event_goes_to_each_endpoint_that_wants_it(
    factory: sessionmaker[Session], project_id: str
) -> None:
    wanted = {endpoint(factory, project_id), endpoint(factory, project_id)}
    endpoint(factory, project_id, event_types=["eval.run.failed"])
    endpoint(factory, project_id, enabled=False)
    endpoint(factory, project_id, deleted_at=1)
    with factory.begin() as session:
        other = create_project(session, "other").id
    endpoint(factory, other)
    happen(factory, project_id)
    made = deliveries(factory)
    assert {row.endpoint_id for row in made} == wanted
    assert len({row.message_id for row in made}) == 1
    assert {row.give_up_at - row.created_at for row in made} == {TRIED_S}
    with factory.begin() as session:
        assert fan_out(session) == 0
        assert session.scalars(select(Outbox.sent_at)).one() is not None


def test_a_delivery_is_held_by_one_of_many_workers(
    factory: sessionmaker[Session], project_id: str
) -> None:
    for _ in range(6):
        endpoint(factory, project_id)
    with factory.begin() as session:
        for number in range(4):
            enqueue_webhook(session, project_id, TYPE, f"ftjob-{number}")
    held: list[Claimed] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(3):
            with factory.begin() as session:
                fan_out(session, limit=2)
            held.extend(claim(factory, limit=4))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for each in held:
        settle(factory, each, TAKEN)
    held.extend(claim(factory, limit=100))
    assert len(deliveries(factory)) == 24
    assert len(held) == len({each.id for each in held}) == 24
    assert claim(factory) == []


def test_one_endpoint_gets_few_at_a_time_and_others_are_not_kept_waiting(
    factory: sessionmaker[Session], project_id: str
) -> None:
    hung = endpoint(factory, project_id)
    happen(factory, project_id, 20)
    quick = endpoint(factory, project_id)
    happen(factory, project_id, 1)
    first = claim(factory)
    assert sorted(each.endpoint_id for each in first) == sorted([hung] * PER_ENDPOINT + [quick])
    assert claim(factory) == []  # whoever asks
    settle(factory, first[0], TAKEN)
    assert [each.endpoint_id for each in claim(factory)] == [hung]


def test_a_project_whose_endpoints_hang_leaves_room_for_the_others(
    factory: sessionmaker[Session], project_id: str
) -> None:
    for _ in range(10):
        endpoint(factory, project_id)
    happen(factory, project_id, 60)
    with factory.begin() as session:
        other = create_project(session, "other").id
    theirs = endpoint(factory, other)
    happen(factory, other)
    # Of 600 that are due before it, a look takes a few.
    held = claim(factory, limit=32)
    assert len(held) == PER_PROJECT + 1
    assert theirs in {each.endpoint_id for each in held}


def test_a_delivery_whose_worker_died_is_taken_by_another_and_the_late_outcome_is_ignored(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (late,) = claim(factory, lease_s=-1)
    (next_one,) = claim(factory)
    assert (late.id, late.attempt, next_one.attempt) == (next_one.id, 1, 2)
    settle(factory, late, REFUSED)
    assert deliveries(factory)[0].response_status is None
    settle(factory, next_one, TAKEN)
    settle(factory, late, REFUSED)
    (row,) = deliveries(factory)
    assert (row.status, row.response_status, row.attempts) == ("delivered", 200, 2)
    assert row.finished_at is not None


def test_waits_grow_with_jitter_and_the_last_try_is_when_the_time_is_over(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    for base in (*WAITS_S, LAST_WAIT_S):
        (claimed,) = claim(factory)
        before = now()
        settle(factory, claimed, REFUSED)
        (row,) = deliveries(factory)
        low, high = base * (1 - JITTER) - 2, base * (1 + JITTER) + 2
        assert low <= row.next_attempt_at - before <= high
        assert claim(factory) == []
        change(factory, next_attempt_at=now())
    change(factory, give_up_at=now() + 100)
    (claimed,) = claim(factory)
    settle(factory, claimed, REFUSED)
    (row,) = deliveries(factory)
    assert (row.status, row.next_attempt_at) == ("pending", row.give_up_at)
    assert row.attempts == len(WAITS_S) + 2
    assert len({wait_s(20) for _ in range(20)}) > 1


def test_a_wish_to_wait_longer_is_heard(factory: sessionmaker[Session], project_id: str) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)
    settle(factory, claimed, Outcome(429, "busy", retry_after_s=1000))
    assert deliveries(factory)[0].next_attempt_at >= now() + 995


def test_an_endpoint_that_took_nothing_for_72_hours_is_turned_off_and_says_why(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)
    assert settle(factory, claimed, REFUSED) is None
    assert the_endpoint(factory).failing_since is not None
    change(factory, next_attempt_at=now(), give_up_at=now() - 1)
    with factory.begin() as session:
        start = now() - TRIED_S
        session.execute(update(WebhookEndpoint).values(failing_since=start))
    (claimed,) = claim(factory)
    assert "no message for 72 hours" in (settle(factory, claimed, REFUSED) or "")
    row, told = deliveries(factory)[0], the_endpoint(factory)
    assert (row.status, row.error) == ("failed", "status 500.")
    assert not told.enabled
    assert "status 500." in (told.disabled_reason or "")


def test_a_success_in_between_keeps_the_endpoint_on(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id, 2)
    first, second = claim(factory)
    settle(factory, first, REFUSED)
    settle(factory, second, TAKEN)
    assert the_endpoint(factory).failing_since is None
    change(factory, next_attempt_at=now(), give_up_at=now() - 1)
    (claimed,) = claim(factory)
    assert settle(factory, claimed, REFUSED) is None
    assert the_endpoint(factory).enabled
    assert deliveries(factory)[0].status == "failed"


def test_an_endpoint_that_is_gone_is_turned_off_at_once(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)
    assert "410" in (settle(factory, claimed, Outcome(410, "gone", gone=True)) or "")
    assert not the_endpoint(factory).enabled
    assert deliveries(factory)[0].status == "failed"
    with factory() as session:
        entry = session.scalars(select(AuditEntry)).one()
    assert (entry.action, entry.project_id) == ("webhook_endpoint.disabled", project_id)
    assert entry.object_id == the_endpoint(factory).id


def test_what_waits_for_an_endpoint_that_is_off_goes_out_when_it_is_on_again(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    for enabled, count in ((False, 0), (True, 1)):
        with factory.begin() as session:
            session.execute(update(WebhookEndpoint).values(enabled=enabled))
        assert len(claim(factory)) == count


def test_deleting_in_the_middle_of_an_attempt_ends_it(
    factory: sessionmaker[Session], project_id: str
) -> None:
    row_id = endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)
    with factory.begin() as session:
        abandon(session, row_id)
        session.execute(update(WebhookEndpoint).values(deleted_at=now()))
    settle(factory, claimed, REFUSED)
    (row,) = deliveries(factory)
    assert (row.status, row.error) == ("failed", "The endpoint was deleted.")
    assert claim(factory) == []


def test_a_replay_starts_over_and_leaves_what_is_under_way_alone(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)

    def again() -> WebhookDelivery:
        with factory.begin() as session:
            row = session.scalars(select(WebhookDelivery)).one()
            replay(session, row)
            return row

    assert again().lease_expires_at is not None  # being tried: nothing to replay
    settle(factory, claimed, TAKEN)
    change(factory, give_up_at=1)
    row = again()
    assert (row.status, row.attempts, row.attempts_before) == ("pending", 1, 1)
    assert row.give_up_at >= now() + TRIED_S - 5
    assert row.finished_at is None
    (second,) = claim(factory)
    assert (second.message_id, second.attempt) == (claimed.message_id, 2)
    settle(factory, second, REFUSED)
    wait = deliveries(factory)[0].next_attempt_at - now()
    assert wait <= WAITS_S[0] * (1 + JITTER) + 1  # waits begin anew


def test_all_failed_since_a_time_are_replayed(
    factory: sessionmaker[Session], project_id: str
) -> None:
    row_id = endpoint(factory, project_id)
    happen(factory, project_id, 3)
    taken, old, young = claim(factory)
    settle(factory, taken, TAKEN)
    for each, created_at in ((old, now() - 1000), (young, now())):
        with factory.begin() as session:
            session.execute(
                update(WebhookDelivery)
                .where(WebhookDelivery.id == each.id)
                .values(status="failed", created_at=created_at)
            )
    with factory.begin() as session:
        assert replay_failed(session, row_id, since=now() - 500) == 1
    assert [each.id for each in claim(factory)] == [young.id]


def test_only_deliveries_that_ended_long_ago_are_forgotten(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id, 3)
    first, second, _ = claim(factory)
    settle(factory, first, TAKEN)
    settle(factory, second, TAKEN)
    with factory.begin() as session:
        assert trim_deliveries(session) == 0
        session.execute(
            update(WebhookDelivery)
            .where(WebhookDelivery.id == first.id)
            .values(finished_at=now() - KEPT_S - 60)
        )
        session.execute(update(WebhookDelivery).values(created_at=now() - 2 * KEPT_S))
        assert trim_deliveries(session) == 1
    assert len(deliveries(factory)) == 2


def test_secrets_do_not_show_in_what_is_logged(
    factory: sessionmaker[Session], project_id: str
) -> None:
    endpoint(factory, project_id)
    happen(factory, project_id)
    (claimed,) = claim(factory)
    assert claimed.secrets[0]["secret"] not in repr(claimed)
    with pytest.raises(Exception, match=r"UNIQUE|duplicate") as caught, factory.begin() as session:
        first = session.scalars(select(WebhookEndpoint)).one()
        twin = WebhookEndpoint(
            id=first.id,
            project_id=project_id,
            name="twin",
            url="https://hook.test/",
            event_types=[TYPE],
            secrets=first.secrets,
        )
        session.expunge(first)
        session.add(twin)
    assert "whsec_" not in str(caught.value)

"""Claiming an idempotency key: one of many gets it, on both databases."""

import threading

from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from core import idempotency
from core.clock import now
from core.models import IdempotentRequest


def test_one_of_many_claims_the_key(factory: sessionmaker[Session], project_id: str) -> None:
    claims: list[tuple[str, IdempotentRequest | None]] = []
    threads = [
        threading.Thread(target=lambda: claims.append(idempotency.claim(factory, project_id, "k")))
        for _ in range(6)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len([before for _, before in claims if before is None]) == 1
    assert all(before.status is None for _, before in claims if before is not None)


def test_an_answer_is_found_until_it_is_old(
    factory: sessionmaker[Session], project_id: str
) -> None:
    row_id, _ = idempotency.claim(factory, project_id, "k")
    idempotency.finish(factory, row_id, fingerprint="f", status=200, body=b"{}")
    _, before = idempotency.claim(factory, project_id, "k")
    assert before is not None
    assert (before.fingerprint, before.status, before.body) == ("f", 200, b"{}")
    old = now() - idempotency.KEPT_S - 1
    with factory.begin() as session:
        session.execute(update(IdempotentRequest).values(created_at=old))
    fresh, before = idempotency.claim(factory, project_id, "k")
    assert before is None and fresh != row_id


def test_a_claim_that_is_renewed_is_not_lost(
    factory: sessionmaker[Session], project_id: str
) -> None:
    row_id, _ = idempotency.claim(factory, project_id, "k")
    silent = update(IdempotentRequest).values(created_at=now() - idempotency.LOST_S - 1)
    with factory.begin() as session:
        session.execute(silent)
    idempotency.renew(factory, row_id)
    assert idempotency.claim(factory, project_id, "k")[1] is not None
    idempotency.finish(factory, row_id, fingerprint="f", status=200, body=b"{}")
    with factory.begin() as session:
        session.execute(update(IdempotentRequest).values(created_at=5))
    idempotency.renew(factory, row_id)  # an answer grows old however late the last sign comes
    with factory() as session:
        assert session.scalars(select(IdempotentRequest.created_at)).one() == 5


def test_trimming_leaves_what_is_young(factory: sessionmaker[Session], project_id: str) -> None:
    young, _ = idempotency.claim(factory, project_id, "young")
    aged, _ = idempotency.claim(factory, project_id, "old")
    with factory.begin() as session:
        changed = update(IdempotentRequest).where(IdempotentRequest.id == aged)
        session.execute(changed.values(created_at=now() - idempotency.KEPT_S - 1))
        idempotency.trim(session)
    with factory() as session:
        assert session.scalars(select(IdempotentRequest.id)).all() == [young]

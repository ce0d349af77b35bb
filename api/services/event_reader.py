"""Short reads of the database for open event streams; each is one burst in a thread."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, sessionmaker

from api.schemas.jobs import EventObject
from core.clock import now
from core.models import ApiKey, Event, Job, Project
from core.states import TERMINAL

#: Events of one read.
PAGE = 200


@dataclass(frozen=True)
class Frame:
    """One event as it is sent; `seq` gives the order."""

    seq: int
    data: bytes


@dataclass(frozen=True)
class Burst:
    """Events in order, whether more are there, and the job's status when it has ended."""

    frames: Sequence[Frame]
    more: bool
    ended: str | None


class EventReader:
    """What streams ask the database; call its methods in a thread."""

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        self._sessions = sessions

    def after(self, job_id: str, seq: int) -> Burst:
        """Return the first events past `seq`."""
        with self._sessions() as session:
            # The status first: once it says that the job has ended, all its events are there.
            status = session.scalar(select(Job.status).where(Job.id == job_id))
            rows = session.scalars(
                select(Event)
                .where(Event.job_id == job_id, Event.seq > seq)
                .order_by(Event.seq)
                .limit(PAGE + 1)
            ).all()
        frames = [Frame(row.seq, _frame(row)) for row in rows[:PAGE]]
        more = len(rows) > PAGE
        # Without a row the job is gone, and nothing more will come.
        ended = status or "deleted"
        return Burst(frames, more, ended if status in TERMINAL or status is None else None)

    def last_seq(self, job_id: str) -> int:
        """Return where the job's history ends now; 0 before its first event."""
        with self._sessions() as session:
            return session.scalar(select(func.max(Event.seq)).where(Event.job_id == job_id)) or 0

    def seq_of(self, job_id: str, event_id: str) -> int | None:
        """Return the place of an event in the job's history; None when it is not in it."""
        with self._sessions() as session:
            return session.scalar(
                select(Event.seq).where(Event.id == event_id, Event.job_id == job_id)
            )

    def advanced(self, cursors: dict[str, int]) -> list[str]:
        """Return those of the jobs that have events past their cursor, have ended or are gone."""
        # One look at the index for each job: grouping would read all events of each.
        last = select(func.max(Event.seq)).where(Event.job_id == Job.id).scalar_subquery()
        with self._sessions() as session:
            rows = session.execute(
                select(Job.id, Job.status, last).where(Job.id.in_(cursors))
            ).all()
        quiet = {
            job_id
            for job_id, status, seq in rows
            if status not in TERMINAL and (seq or 0) <= cursors[job_id]
        }
        return [job_id for job_id in cursors if job_id not in quiet]

    def live_keys(self, key_ids: Collection[str]) -> set[str]:
        """Return those of the keys that are still good."""
        with self._sessions() as session:
            found = session.scalars(
                select(ApiKey.id)
                .join(Project, ApiKey.project_id == Project.id)
                .where(
                    ApiKey.id.in_(key_ids),
                    ApiKey.revoked_at.is_(None),
                    or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now()),
                    Project.archived_at.is_(None),
                )
            ).all()
        return set(found)


def _frame(row: Event) -> bytes:
    return f"id: {row.id}\ndata: {EventObject.of(row).model_dump_json()}\n\n".encode()

"""The audit log: who changed what, written in the transaction of the change.

The sessions of the API are watched: one that commits a change to what is in `SHOWN` while somebody
asks for changes writes an entry with it, so that neither is there without the other. No value is
recorded but the columns in `SHOWN`: no secret, and nothing of what users store.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event, inspect
from sqlalchemy.orm import (
    ORMExecuteState,
    Session,
    SessionTransaction,
    UOWTransaction,
    sessionmaker,
)

from core.models import (
    ApiKey,
    AuditEntry,
    Base,
    Checkpoint,
    CheckpointPermission,
    Eval,
    EvalRun,
    File,
    Job,
    Project,
    Upload,
    UploadPart,
    WebhookDelivery,
    WebhookEndpoint,
)

#: What can be the object of a change, and the columns that an entry shows of it.
SHOWN: Mapping[type[Base], tuple[str, ...]] = {
    Project: ("name", "limits", "retention"),
    ApiKey: ("name", "scopes", "expires_at"),
    CheckpointPermission: ("model", "grantee_id"),
    Job: (),
    File: ("filename", "purpose"),
    Upload: ("filename", "purpose"),
    UploadPart: (),
    Checkpoint: ("name",),
    Eval: (),
    EvalRun: (),
    WebhookEndpoint: (),
    WebhookDelivery: (),
}
#: The most objects that one entry names.
MAX_NAMED = 100


@dataclass(frozen=True)
class Change:
    """A request for a change: who asks, for what, and the id that the request's path ends with."""

    action: str
    project_id: str
    key_id: str
    request_id: str
    path_id: str | None


#: Tells of the change that is being asked for where this code runs; None where nobody is known.
_asked: ContextVar[Callable[[], Change | None] | None] = ContextVar("asked", default=None)


@contextmanager
def asking(describe: Callable[[], Change | None]) -> Iterator[None]:
    """Record what watched sessions commit within the block; `describe` is called when they do."""
    token = _asked.set(describe)
    try:
        yield
    finally:
        _asked.reset(token)


def watch(sessions: sessionmaker[Session]) -> None:
    """Record the changes that these sessions commit within `asking`."""
    event.listen(sessions, "after_transaction_create", _begin)


def record(
    session: Session,
    action: str,
    *,
    project_id: str,
    object_id: str | None,
    key_id: str | None = None,
    request_id: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry to the caller's transaction; without a key the operator's command did it."""
    session.add(
        AuditEntry(
            project_id=project_id,
            key_id=key_id,
            request_id=request_id,
            action=action,
            object_id=None if object_id is None else object_id[:255],
            data=dict(data) if data else None,
        )
    )


def record_command(session: Session, action: str, row: Base) -> None:
    """Add an entry for what `rft-server` did to `row`, which is stored."""
    shown = _shown(row)
    record(
        session, action, project_id=_project_of(row) or "", object_id=shown.pop("id"), data=shown
    )


@dataclass
class _Seen:
    """What one session has written since it was first watched."""

    added: list[Base] = field(default_factory=list)
    changed: list[Base] = field(default_factory=list)
    #: Whether a statement changed rows that the session does not hold.
    by_statement: bool = False

    def after_flush(self, session: Session, _: UOWTransaction) -> None:
        self.added += [each for each in session.new if type(each) in SHOWN]
        altered = [each for each in session.dirty if session.is_modified(each)]
        for each in [*altered, *session.deleted]:
            if type(each) in SHOWN and each not in [*self.added, *self.changed]:
                self.changed.append(each)

    def do_orm_execute(self, state: ORMExecuteState) -> None:
        writes = state.is_update or state.is_delete or state.is_insert
        if state.execution_options.get("lock_only"):
            return
        if writes and state.bind_mapper is not None and state.bind_mapper.class_ in SHOWN:
            self.by_statement = True

    def before_commit(self, session: Session) -> None:
        session.flush()
        objects = (self.added or self.changed)[:MAX_NAMED]
        if not (objects or self.by_statement):
            return
        describe = _asked.get()
        change = describe() if describe else None
        if change is None:
            return
        shown = [_shown(each) for each in objects]
        ids = [each["id"] for each in shown]
        details = shown[0] if len(shown) == 1 else {"objects": shown} if shown else {}
        record(
            session,
            change.action,
            project_id=(_project_of(objects[0]) if objects else None) or change.project_id,
            object_id=ids[0] if ids else change.path_id,
            key_id=change.key_id,
            request_id=change.request_id,
            data={name: value for name, value in details.items() if name != "id"},
        )
        self.added, self.changed, self.by_statement = [], [], False


def _begin(session: Session, _: SessionTransaction) -> None:
    """Watch the session of a request for changes; sessions of other requests pay nothing.

    It must be begun (`sessions.begin()`) before its first statement for that one to be seen.
    """
    if _asked.get() is None or "audit" in session.info:
        return
    seen = session.info["audit"] = _Seen()
    for name in ("after_flush", "do_orm_execute", "before_commit"):
        event.listen(session, name, getattr(seen, name))


def _shown(row: Base) -> dict[str, Any]:
    """Return the row's id and what is shown of it, without asking the database."""
    state = inspect(row)
    key = state.identity[0] if state.identity else state.dict.get("id")
    return {"id": str(key), **{name: state.dict.get(name) for name in SHOWN[type(row)]}}


def _project_of(row: Base) -> str | None:
    loaded = inspect(row).dict
    return loaded.get("id") if isinstance(row, Project) else loaded.get("project_id")

"""Reading the audit log: a key with the scope `admin` reads all of it, others their project's."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select
from starlette.datastructures import QueryParams

from api.pagination import Page, clamp, paginate
from api.tenancy import Tenant
from core.errors import InvalidRequest
from core.keys import ADMIN, Principal
from core.models import AuditEntry, Project
from core.nearest import nearest

ORDER = (AuditEntry.created_at, AuditEntry.seq, AuditEntry.id)
_LISTS = {
    "event_types": AuditEntry.action,
    "project_ids": AuditEntry.project_id,
    "actor_ids": AuditEntry.key_id,
    "resource_ids": AuditEntry.object_id,
}
_TIMES = ("gt", "gte", "lt", "lte")
_OTHERS = ("after", "before", "limit")
_KNOWN = [*_LISTS, *(f"effective_at[{name}]" for name in _TIMES), *_OTHERS]


@dataclass(frozen=True)
class Filter:
    """What to read: lists of wanted values by name, and bounds of the time by name."""

    lists: dict[str, list[str]]
    times: dict[str, int]

    @classmethod
    def of(cls, query: QueryParams) -> "Filter":
        """Read the query, lists also in the form `name[]=a&name[]=b` that OpenAI's clients send.

        Raises `InvalidRequest` for a filter that is not known here.
        """
        lists: dict[str, list[str]] = {}
        times: dict[str, int] = {}
        for name, value in query.multi_items():
            plain = name.removesuffix("[]")
            bound = plain.removeprefix("effective_at[").removesuffix("]")
            if plain in _LISTS:
                lists.setdefault(plain, []).append(value)
            elif bound != plain and bound in _TIMES:
                times[bound] = _time(plain, value)
            elif plain not in _OTHERS:
                raise _unknown(plain)
        return cls(lists, times)

    def narrow(self, query: Select[AuditEntry]) -> Select[AuditEntry]:
        """Return the query for the wanted entries only."""
        for name, values in self.lists.items():
            query = query.where(_LISTS[name].in_(values))
        at = AuditEntry.created_at
        bounds = {"gt": at.__gt__, "gte": at.__ge__, "lt": at.__lt__, "lte": at.__le__}
        for name, value in self.times.items():
            query = query.where(bounds[name](value))
        return query


def list_entries(
    tenant: Tenant,
    principal: Principal,
    wanted: Filter,
    *,
    after: str | None,
    before: str | None,
    limit: int | None,
) -> Page[AuditEntry]:
    """Return a page of entries, newest first; `before` gives the page that ends before an entry."""
    seen = select(AuditEntry) if principal.may(ADMIN) else tenant.select(AuditEntry)
    if after is not None and before is not None:
        raise InvalidRequest("Send 'after' or 'before', not both.", param="before")
    cursor = after if before is None else before
    page = paginate(
        tenant.session,
        wanted.narrow(seen),
        order=ORDER,
        cursor=None if cursor is None else seen.where(AuditEntry.id == cursor),
        limit=clamp(limit, default=20, maximum=100),
        descending=before is None,
    )
    return page if before is None else Page(rows=page.rows[::-1], has_more=page.has_more)


def project_names(tenant: Tenant, entries: Sequence[AuditEntry]) -> dict[str, str]:
    """Return the names of the projects that the entries are about, by id."""
    ids = {entry.project_id for entry in entries}
    query = select(Project.id, Project.name).where(Project.id.in_(ids))
    return {row.id: row.name for row in tenant.session.execute(query)}


def _time(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 12):
        raise InvalidRequest(
            f"Invalid value for '{name}': it must be a unix time in seconds.", param=name
        )
    return int(value)


def _unknown(name: str) -> InvalidRequest:
    guess = nearest(name, _KNOWN)
    hint = f"did you mean '{guess}'?" if guess else f"filters are {', '.join(_KNOWN)}."
    return InvalidRequest(f"Unknown filter '{name}': {hint}", param=name, code="unknown_parameter")

"""Webhook endpoints of a project, and what is on its way to them."""

from typing import Literal

from pydantic import SecretStr
from sqlalchemy import func, select

from api.pagination import Page, clamp, paginate
from api.schemas.webhooks import CreateWebhook, UpdateWebhook
from api.tenancy import Tenant
from core import deliveries
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.ids import new_id
from core.limits import lock_project
from core.models import WebhookDelivery, WebhookEndpoint
from core.notify import want_delivery
from core.webhooks import Outcome, check_event_types, new_event, new_secret, send, valid_secrets
from graders.http import Outbound, Policy, Refused
from graders.http.policy import parse_url

#: The most endpoints of one project, and the most secrets that sign at the same time.
MAX_ENDPOINTS, MAX_SECRETS = 20, 4
#: Seconds for which an old secret goes on signing when asked for.
OVERLAP_S = 24 * 3600

Status = Literal["pending", "delivered", "failed"]


def create(
    tenant: Tenant, policy: Policy, request: CreateWebhook
) -> tuple[WebhookEndpoint, SecretStr]:
    """Add an endpoint and return it with its secret; raises `InvalidRequest` for its URL."""
    _check_url(policy, request.url)
    lock_project(tenant.session, tenant.project_id)
    mine = tenant.select(WebhookEndpoint).where(WebhookEndpoint.deleted_at.is_(None)).subquery()
    if (tenant.session.scalar(select(func.count()).select_from(mine)) or 0) >= MAX_ENDPOINTS:
        raise InvalidRequest(
            f"A project has at most {MAX_ENDPOINTS} webhook endpoints; delete one first.",
            code="too_many_webhook_endpoints",
        )
    secret = new_secret()
    row = WebhookEndpoint(
        project_id=tenant.project_id,
        name=request.name,
        url=request.url,
        event_types=request.event_types,
        secrets=[{"secret": secret, "expires_at": None}],
        enabled=request.enabled is not False,
    )
    tenant.session.add(row)
    tenant.session.flush()
    return row, SecretStr(secret)


def _check_url(policy: Policy, url: str) -> None:
    """Refuse what can be refused before its name is resolved; the rest shows at each delivery."""
    try:
        policy.check(parse_url(url))
    except ValueError as error:
        raise InvalidRequest(
            f"Invalid value for 'url': {error}.", param="url", code="invalid_value"
        ) from error
    except Refused as refused:
        message = f"Invalid value for 'url': {refused.message}"
        raise InvalidRequest(message, param="url", code="invalid_value") from refused


def find(tenant: Tenant, endpoint_id: str) -> WebhookEndpoint:
    """Return an endpoint that was not deleted; raises `NotFound`."""
    row = tenant.find(WebhookEndpoint, endpoint_id)
    if row is None or row.deleted_at is not None:
        raise NotFound(
            f"No such webhook endpoint: {endpoint_id}. GET /v1/webhook_endpoints lists them.",
            param="webhook_endpoint_id",
            code="webhook_endpoint_not_found",
        )
    return row


def list_endpoints(
    tenant: Tenant, *, after: str | None, limit: int | None
) -> Page[WebhookEndpoint]:
    """Return a page of endpoints, newest first."""
    query = tenant.select(WebhookEndpoint)
    return paginate(
        tenant.session,
        query.where(WebhookEndpoint.deleted_at.is_(None)),
        order=(WebhookEndpoint.created_at, WebhookEndpoint.seq, WebhookEndpoint.id),
        cursor=None if after is None else query.where(WebhookEndpoint.id == after),
        limit=clamp(limit, default=20),
    )


def update(tenant: Tenant, policy: Policy, row: WebhookEndpoint, request: UpdateWebhook) -> None:
    """Change what the request names; enabling an endpoint sends what waited for it."""
    changes = {
        name: value
        for name, value in request.model_dump(exclude_none=True).items()
        if value != getattr(row, name)
    }
    if "url" in changes:
        _check_url(policy, changes["url"])
    if not changes:
        return
    for name, value in changes.items():
        setattr(row, name, value)
    row.updated_at = now()
    if "enabled" in changes:
        row.disabled_reason = None
    if changes.get("enabled"):
        row.failing_since = None
        want_delivery(tenant.session)
    tenant.session.flush()


def rotate_secret(tenant: Tenant, row: WebhookEndpoint, *, keep_old: bool) -> SecretStr:
    """Replace the signing secret; with `keep_old` the old one signs too for `OVERLAP_S` seconds."""
    # Of two rotations at once the later one must see the secret of the earlier one: both are shown.
    lock_project(tenant.session, tenant.project_id)
    tenant.session.refresh(row)
    find(tenant, row.id)  # it may be deleted by now
    secret, until = new_secret(), now() + OVERLAP_S
    valid = set(valid_secrets(row.secrets, now())) if keep_old else set()
    if len(valid) >= MAX_SECRETS:
        raise InvalidRequest(
            f"{row.id} has {len(valid)} secrets that still sign; wait until the oldest has run out,"
            " or end them all with keep_old_secret_active_for_24_hours set to false.",
            code="too_many_secrets",
        )
    old = [
        {"secret": each["secret"], "expires_at": min(each["expires_at"] or until, until)}
        for each in row.secrets
        if each["secret"] in valid
    ]
    row.secrets = [{"secret": secret, "expires_at": None}, *old]
    row.updated_at = now()
    tenant.session.flush()
    return SecretStr(secret)


def delete(tenant: Tenant, row: WebhookEndpoint) -> None:
    """Delete an endpoint; what is on its way to it ends, and its secrets are forgotten."""
    deliveries.abandon(tenant.session, row.id)
    row.deleted_at, row.secrets = now(), []
    tenant.session.flush()


async def send_test(
    outbound: Outbound, row: WebhookEndpoint, event_type: str | None
) -> tuple[str, Outcome]:
    """Send a sample event and return its type and what came of it; no session may be open."""
    type = row.event_types[0] if event_type is None else event_type
    check_event_types([type], param="event_type")
    object_id = new_id("evalrun_test" if type.startswith("eval.") else "ftjob-test")
    outcome = await send(
        outbound,
        row.url,
        new_event(type, object_id),
        message_id=new_id("wh_test"),
        stored_secrets=row.secrets,
    )
    if outcome.status is None:
        raise InvalidRequest(
            f"The endpoint could not be tested: {outcome.error}",
            param="url",
            code="webhook_unreachable",
        )
    return type, outcome


def list_deliveries(
    tenant: Tenant,
    row: WebhookEndpoint,
    *,
    status: Status | None,
    after: str | None,
    limit: int | None,
) -> Page[WebhookDelivery]:
    """Return a page of an endpoint's deliveries, newest first."""
    query = tenant.select(WebhookDelivery).where(WebhookDelivery.endpoint_id == row.id)
    return paginate(
        tenant.session,
        query if status is None else query.where(WebhookDelivery.status == status),
        order=(WebhookDelivery.created_at, WebhookDelivery.seq, WebhookDelivery.id),
        cursor=None if after is None else query.where(WebhookDelivery.id == after),
        limit=clamp(limit, default=20),
    )


def find_delivery(tenant: Tenant, row: WebhookEndpoint, delivery_id: str) -> WebhookDelivery:
    """Return a delivery of the endpoint; raises `NotFound`."""
    found = tenant.find(WebhookDelivery, delivery_id)
    if found is None or found.endpoint_id != row.id:
        raise NotFound(
            f"No such delivery: {delivery_id}."
            f" GET /v1/webhook_endpoints/{row.id}/deliveries lists them.",
            param="delivery_id",
            code="webhook_delivery_not_found",
        )
    return found


def replay(tenant: Tenant, row: WebhookEndpoint, delivery: WebhookDelivery) -> None:
    """Try one delivery again, whatever its status."""
    _refuse_disabled(row)
    deliveries.replay(tenant.session, delivery)
    want_delivery(tenant.session)


def replay_failed(tenant: Tenant, row: WebhookEndpoint, *, since: int) -> int:
    """Try all failed deliveries since a unix time again; returns how many."""
    _refuse_disabled(row)
    want_delivery(tenant.session)
    return deliveries.replay_failed(tenant.session, row.id, since=since)


def _refuse_disabled(row: WebhookEndpoint) -> None:
    if not row.enabled:
        raise InvalidRequest(
            f"{row.id} is disabled, so nothing can be sent to it; enable it first.",
            code="webhook_endpoint_disabled",
        )

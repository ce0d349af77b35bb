"""/v1/webhook_endpoints: OpenAI's endpoints for webhooks and, ours, deliveries and replay."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.auth import PrincipalDep
from api.bodies import json_body
from api.pagination import After, Limit
from api.parts import PartsDep
from api.schemas.common import Deleted, EmptyBody, ListPageWithIds
from api.schemas.webhooks import (
    CreateWebhook,
    DeliveryObject,
    Replay,
    Replayed,
    RotateSecret,
    SendTest,
    UpdateWebhook,
    WebhookEventTypes,
    WebhookObject,
    WebhookTestResult,
    WebhookWithSecret,
)
from api.services import webhooks
from api.tenancy import Tenant
from api.tenant import TenantDep
from core.models import WebhookDelivery, WebhookEndpoint
from core.webhooks import EVENT_TYPES

router = APIRouter(prefix="/v1")


def get_endpoint(webhook_endpoint_id: str, tenant: TenantDep) -> WebhookEndpoint:
    """Return the endpoint named in the path, or raise `NotFound`."""
    return webhooks.find(tenant, webhook_endpoint_id)


EndpointDep = Annotated[WebhookEndpoint, Depends(get_endpoint)]


def get_delivery(delivery_id: str, endpoint: EndpointDep, tenant: TenantDep) -> WebhookDelivery:
    """Return the delivery named in the path, or raise `NotFound`."""
    return webhooks.find_delivery(tenant, endpoint, delivery_id)


DeliveryDep = Annotated[WebhookDelivery, Depends(get_delivery)]


def get_tested(
    webhook_endpoint_id: str, principal: PrincipalDep, parts: PartsDep
) -> WebhookEndpoint:
    """Return the endpoint, its transaction being over: its answer may take a while."""
    with parts.sessions() as session:
        return webhooks.find(Tenant(session, principal.project_id), webhook_endpoint_id)


@router.get("/webhook_event_types")
def list_event_types(_: PrincipalDep) -> WebhookEventTypes:
    """List the types of events that this server sends."""
    return WebhookEventTypes(data=list(EVENT_TYPES))


@router.post("/webhook_endpoints")
def create_endpoint(
    tenant: TenantDep,
    parts: PartsDep,
    body: Annotated[CreateWebhook, Depends(json_body(CreateWebhook))],
) -> WebhookWithSecret:
    """Create an endpoint; its signing secret is in this answer and never again."""
    row, secret = webhooks.create(tenant, parts.outbound.policy, body)
    return WebhookWithSecret.with_secret(row, secret)


@router.get("/webhook_endpoints")
def list_endpoints(
    tenant: TenantDep, after: After = None, limit: Limit = None
) -> ListPageWithIds[WebhookObject]:
    """List the project's endpoints, newest first."""
    page = webhooks.list_endpoints(tenant, after=after, limit=limit)
    return ListPageWithIds.of([WebhookObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/webhook_endpoints/{webhook_endpoint_id}")
def retrieve_endpoint(endpoint: EndpointDep) -> WebhookObject:
    """Show one endpoint."""
    return WebhookObject.of(endpoint)


@router.post("/webhook_endpoints/{webhook_endpoint_id}")
def update_endpoint(
    tenant: TenantDep,
    parts: PartsDep,
    endpoint: EndpointDep,
    body: Annotated[UpdateWebhook, Depends(json_body(UpdateWebhook))],
) -> WebhookObject:
    """Change an endpoint's name, URL or event types, or turn it on or off."""
    webhooks.update(tenant, parts.outbound.policy, endpoint, body)
    return WebhookObject.of(endpoint)


@router.delete("/webhook_endpoints/{webhook_endpoint_id}")
def delete_endpoint(tenant: TenantDep, endpoint: EndpointDep) -> Deleted:
    """Delete an endpoint; nothing more is sent to it."""
    webhooks.delete(tenant, endpoint)
    return Deleted(id=endpoint.id, object="webhook_endpoint.deleted")


@router.post("/webhook_endpoints/{webhook_endpoint_id}/rotate_secret")
def rotate_secret(
    tenant: TenantDep,
    endpoint: EndpointDep,
    body: Annotated[RotateSecret, Depends(json_body(RotateSecret))],
) -> WebhookWithSecret:
    """Replace an endpoint's signing secret; the new one is in this answer and never again."""
    keep_old = body.keep_old_secret_active_for_24_hours is True
    secret = webhooks.rotate_secret(tenant, endpoint, keep_old=keep_old)
    return WebhookWithSecret.with_secret(endpoint, secret)


@router.post("/webhook_endpoints/{webhook_endpoint_id}/test")
async def test_endpoint(
    parts: PartsDep,
    endpoint: Annotated[WebhookEndpoint, Depends(get_tested)],
    body: Annotated[SendTest, Depends(json_body(SendTest))],
) -> WebhookTestResult:
    """Send a sample event now and show how the endpoint answers."""
    event_type, outcome = await webhooks.send_test(parts.outbound, endpoint, body.event_type)
    return WebhookTestResult(
        webhook_endpoint_id=endpoint.id, event_type=event_type, status_code=outcome.status or 0
    )


@router.get("/webhook_endpoints/{webhook_endpoint_id}/deliveries")
def list_deliveries(
    tenant: TenantDep,
    endpoint: EndpointDep,
    status: webhooks.Status | None = None,
    after: After = None,
    limit: Limit = None,
) -> ListPageWithIds[DeliveryObject]:
    """List what was sent to an endpoint, or is on its way, newest first."""
    page = webhooks.list_deliveries(tenant, endpoint, status=status, after=after, limit=limit)
    return ListPageWithIds.of([DeliveryObject.of(row) for row in page.rows], has_more=page.has_more)


@router.get("/webhook_endpoints/{webhook_endpoint_id}/deliveries/{delivery_id}")
def retrieve_delivery(delivery: DeliveryDep) -> DeliveryObject:
    """Show one delivery."""
    return DeliveryObject.of(delivery)


@router.post(
    "/webhook_endpoints/{webhook_endpoint_id}/deliveries/{delivery_id}/replay",
    dependencies=[Depends(json_body(EmptyBody))],
)
def replay_delivery(
    tenant: TenantDep, endpoint: EndpointDep, delivery: DeliveryDep
) -> DeliveryObject:
    """Send one delivery again, for up to 72 hours."""
    webhooks.replay(tenant, endpoint, delivery)
    return DeliveryObject.of(delivery)


@router.post("/webhook_endpoints/{webhook_endpoint_id}/replay")
def replay_failed(
    tenant: TenantDep, endpoint: EndpointDep, body: Annotated[Replay, Depends(json_body(Replay))]
) -> Replayed:
    """Send all deliveries again that were made since a time and failed."""
    return Replayed(replayed=webhooks.replay_failed(tenant, endpoint, since=body.since))

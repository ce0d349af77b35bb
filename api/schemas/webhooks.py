"""Webhook endpoints in the shapes of OpenAI's clients, and, ours, their deliveries."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, SecretStr

from api.schemas.common import ApiObject, RequestBody
from core.models import WebhookDelivery, WebhookEndpoint
from core.webhooks import SECRET_PREFIX, check_event_types

MAX_NAME, MAX_URL = 256, 2048


def _known(types: list[str]) -> list[str]:
    check_event_types(types)
    return list(dict.fromkeys(types))


EventTypes = Annotated[list[str], Field(min_length=1), AfterValidator(_known)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Url = Annotated[str, Field(min_length=1, max_length=MAX_URL)]


class CreateWebhook(RequestBody):
    """The body that creates an endpoint; `enabled` is ours."""

    name: Name
    url: Url
    event_types: EventTypes
    enabled: bool | None = None


class UpdateWebhook(RequestBody):
    """The body that changes an endpoint; what is left out, or null, stays."""

    name: Name | None = None
    url: Url | None = None
    event_types: EventTypes | None = None
    enabled: bool | None = None


class RotateSecret(RequestBody):
    """The body that replaces the signing secret."""

    keep_old_secret_active_for_24_hours: bool | None = None


class SendTest(RequestBody):
    """The body that sends a sample event; the endpoint's first type when none is named."""

    event_type: str | None = None


class Replay(RequestBody):
    """The body that has the failed deliveries made since a unix time tried again."""

    since: Annotated[int, Field(ge=0, le=2**53)]


class WebhookObject(ApiObject):
    """An endpoint without its secret; times are unix seconds.

    `enabled`, `status`, `failing_since` and `disabled_reason` are ours.
    """

    object: Literal["webhook_endpoint"] = "webhook_endpoint"
    created_at: int
    updated_at: int
    name: str
    url: str
    event_types: list[str]
    signing_secret_hint: str
    enabled: bool
    status: Annotated[
        Literal["active", "failing", "disabled"],
        Field(description="`failing` when the last attempt failed."),
    ]
    failing_since: int | None
    disabled_reason: Annotated[
        str | None, Field(description="Why the service turned it off; null when a caller did.")
    ]

    @classmethod
    def of(cls, row: WebhookEndpoint) -> "WebhookObject":
        """Show one database row."""
        return cls.model_validate(_shown(row))


class WebhookWithSecret(WebhookObject):
    """An endpoint with its new secret, which is shown this once."""

    signing_secret: str = Field(repr=False)

    @classmethod
    def with_secret(cls, row: WebhookEndpoint, secret: SecretStr) -> "WebhookWithSecret":
        """Show a row whose secret was just made."""
        return cls.model_validate({**_shown(row), "signing_secret": secret.get_secret_value()})


def _shown(row: WebhookEndpoint) -> dict[str, Any]:
    status = "active" if row.failing_since is None else "failing"
    return {
        "id": row.id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "name": row.name,
        "url": row.url,
        "event_types": row.event_types,
        "signing_secret_hint": f"{SECRET_PREFIX}…{row.secrets[0]['secret'][-4:]}",
        "enabled": row.enabled,
        "status": status if row.enabled else "disabled",
        "failing_since": row.failing_since,
        "disabled_reason": row.disabled_reason,
    }


class WebhookTestResult(BaseModel):
    """How an endpoint answered a sample event."""

    object: Literal["webhook_endpoint.test"] = "webhook_endpoint.test"
    webhook_endpoint_id: str
    event_type: str
    status_code: int
    success: Literal[True] = True


class WebhookEventTypes(BaseModel):
    """Every type of event that this server sends."""

    object: Literal["list"] = "list"
    data: list[str]


class WebhookEventData(BaseModel):
    """What an event is about."""

    id: str


class WebhookEvent(BaseModel):
    """The body of a webhook."""

    id: str
    object: Literal["event"] = "event"
    created_at: int
    type: str
    data: WebhookEventData


class DeliveryObject(ApiObject):
    """One event on its way to one endpoint; times are unix seconds.

    `message_id` is the `webhook-id` header. `next_attempt_at` and `give_up_at` are null once it is
    over; `response_status` and `error` are those of the last attempt.
    """

    object: Literal["webhook_endpoint.delivery"] = "webhook_endpoint.delivery"
    webhook_endpoint_id: str
    message_id: str
    event: WebhookEvent
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    created_at: int
    last_attempt_at: int | None
    next_attempt_at: int | None
    give_up_at: int | None
    response_status: int | None
    error: str | None
    finished_at: int | None

    @classmethod
    def of(cls, row: WebhookDelivery) -> "DeliveryObject":
        """Show one database row."""
        waits = row.status == "pending"
        return cls.model_validate(
            {
                "id": row.id,
                "webhook_endpoint_id": row.endpoint_id,
                "message_id": row.message_id,
                "event": row.event,
                "status": row.status,
                "attempts": row.attempts,
                "created_at": row.created_at,
                "last_attempt_at": row.last_attempt_at,
                "next_attempt_at": row.next_attempt_at if waits else None,
                "give_up_at": row.give_up_at if waits else None,
                "response_status": row.response_status,
                "error": row.error,
                "finished_at": row.finished_at,
            }
        )


class Replayed(BaseModel):
    """How many deliveries are tried again."""

    object: Literal["webhook_endpoint.replay"] = "webhook_endpoint.replay"
    replayed: int

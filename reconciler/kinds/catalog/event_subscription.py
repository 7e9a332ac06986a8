"""Event subscription, and the list of known event types."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import health
from reconciler.kinds.types.fields import Description, Id, Metadata, NonEmpty
from reconciler.model.access import read_list
from reconciler.model.fields.annotations import ReadAs, RefTo, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.health import AccountFacts, Actor, Body, Health, State
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding, Severity
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Json

_SUBJECTS = """
    api_key certificate_authority domain event_destination event_subscription ip_policy ip_policy_rule ip_restriction
    secret ssh_certificate_authority ssh_host_certificate ssh_public_key ssh_user_certificate tcp_address
    tls_certificate tunnel_credential vault
""".split()  # noqa: SIM905 - as a paragraph they can be read
_TRAFFIC = ("agent_session_start", "agent_session_stop", "http_request_complete", "tcp_connection_closed")
EVENT_TYPES = frozenset(
    f"{name}.v0"
    for name in (*_TRAFFIC, *(f"{subject}_{how}" for subject in _SUBJECTS for how in ("created", "updated", "deleted")))
)


def unknown_type(value: object) -> Iterator[Finding]:
    """Warns of an event type that is not on the list of known types. No error: the platform may have added a type."""
    if isinstance(value, str) and value not in EVENT_TYPES:
        remedy = did_you_mean(value, EVENT_TYPES) or "check the spelling"
        yield Finding(("type",), f"unknown event type {value!r}", remedy, Severity.WARNING, code="unknown-event-type")


EventFields = Annotated[list[NonEmpty], Doc("The fields that each event contains, which event types of traffic need.")]
EventFilter = Annotated[str, Doc("An expression that selects the events to send.")]


class EventSubscription(Spec):
    """Sends the events of its sources (`EventSource`) to event destinations."""

    destination_ids: Annotated[
        list[Annotated[Id, RefTo("EventDestination")]],
        ReadAs("destinations[].id"),
        Unordered,
        Doc("The event destinations to send to."),
    ] = []
    description: Description = ""
    metadata: Metadata = ""


class EventSubscriptionRead(Read):
    sources: Annotated[list[Json], Doc("The event sources of the subscription, as complete objects.")] = []


def _check_subscription(body: Body, facts: AccountFacts) -> Health:
    """A subscription with event types and a destination; the types may be children that are listed separately."""
    sources = read_list(body.get("sources")) or facts.list_where(
        "EventSource", ("subscription_id",), health.text_at(body, "id")
    )
    if not sources and not facts.is_complete("EventSource"):
        return Health(State.UNKNOWN, "its event types could not be read")
    if not sources:
        return Health(State.DEGRADED, "it has no event types", "declare one under sources", Actor.YOU)
    destinations = [health.text_at(item, "id") for item in read_list(body.get("destinations"))]
    if not any(destinations):
        return Health(State.DEGRADED, "it has no destination", "set destination_ids", Actor.YOU)
    if any(facts.find("EventDestination", id) is not None for id in destinations):
        return Health(State.HEALTHY)
    if not facts.is_complete("EventDestination"):
        return Health(State.UNKNOWN, "its destinations could not be read")
    return Health(State.DEGRADED, "its destinations do not exist", "set other destination_ids", Actor.YOU)


KIND = Kind(
    spec=EventSubscription,
    read=EventSubscriptionRead,
    path="/event_subscriptions",
    list_key="event_subscriptions",
    id_prefix="esb_",
    health=_check_subscription,
    example="""
        destination_ids: [{ref: EventDestination/audit}]
    """,
)

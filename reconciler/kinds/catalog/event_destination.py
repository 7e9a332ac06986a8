"""Event destination."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical, health
from reconciler.kinds.types.fields import Arn, Deferred, Description, Metadata, NonEmpty, Text
from reconciler.model.fields.annotations import ImmutablePart, InputOnly, Sensitive
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.health import AccountFacts, Actor, Body, Health, State
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


def _check_one_member(part: Part, noun: str) -> Iterator[Finding]:
    """Finds a part of which none, or more than one, of the members is set. `noun` names a member in messages."""
    members = tuple(type(part).model_fields)
    set_members = [name for name in members if getattr(part, name) is not None]
    if not set_members:
        yield Finding((), f"has no {noun}", f"set exactly one of {', '.join(members)}", code="missing-field")
    for extra in set_members[1:]:
        yield Finding(
            (extra,),
            f"is a second {noun} besides {set_members[0]}",
            f"remove {extra} or {set_members[0]}",
            code="conflicting-fields",
        )


class Role(Part):
    """A role of the cloud account that the platform assumes."""

    role_arn: Annotated[Arn, Doc("The ARN of the role.")]


class Creds(Part):
    """Long-term access keys of the cloud account."""

    cloud_access_key_id: Annotated[NonEmpty, Doc("The id of the access key.")]
    cloud_secret_access_key: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The secret of the access key.")]


class CloudAuth(Part):
    """How the platform authenticates with the cloud provider. Exactly one member must be set."""

    role: Annotated[Role | None, Doc("Authenticate by assuming a role.")] = None
    creds: Annotated[Creds | None, Doc("Authenticate with long-term access keys.")] = None

    def findings(self) -> Iterator[Finding]:
        yield from _check_one_member(self, "authentication method")


class Delivery(Part):
    """A managed delivery stream."""

    auth: CloudAuth
    delivery_stream_arn: Annotated[Arn, Doc("The ARN of the delivery stream.")]


class Stream(Part):
    """A data stream."""

    auth: CloudAuth
    stream_arn: Annotated[Arn, Doc("The ARN of the stream.")]


class Logs(Part):
    """A log group."""

    auth: CloudAuth
    log_group_arn: Annotated[Arn, Doc("The ARN of the log group.")]


class Metrics(Part):
    """A metrics vendor."""

    api_key: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The API key of the vendor.")]
    tags: Annotated[Text, Doc("Tags to add to each event.")] = ""
    service: Annotated[Text, Doc("The service name to add to each event.")] = ""
    site: Annotated[Text, Doc("The site of the vendor to send to.")] = ""


class Ingestion(Part):
    """A log-ingestion endpoint."""

    tenant_id: Annotated[NonEmpty, Doc("The id of the tenant that the client belongs to.")]
    client_id: Annotated[NonEmpty, Doc("The id of the client that authenticates.")]
    client_secret: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The secret of the client.")]
    logs_ingestion_uri: Annotated[NonEmpty, Doc("The URI that events are sent to.")]
    data_collection_rule_id: Annotated[NonEmpty, Doc("The id of the data collection rule.")]
    data_collection_stream_name: Annotated[NonEmpty, Doc("The name of the stream in the data collection rule.")]


class Target(Part):
    """Where events are sent. Exactly one member must be set."""

    delivery: Delivery | None = None
    stream: Stream | None = None
    logs: Logs | None = None
    metrics: Metrics | None = None
    ingestion: Ingestion | None = None

    def findings(self) -> Iterator[Finding]:
        yield from _check_one_member(self, "target")


class EventDestination(Spec):
    """An external system that receives events. It receives none until an event subscription refers to it."""

    target: Annotated[Target, ImmutablePart(canonical.member, "target member")]
    format: Annotated[Literal["json"], Deferred, Doc("The serialization format of events.")] = "json"
    description: Description = ""
    metadata: Metadata = ""


def _check_destination(body: Body, facts: AccountFacts) -> Health:
    """A destination to which a subscription sends."""
    if facts.list_where("EventSubscription", ("destinations", "id"), health.text_at(body, "id")):
        return Health(State.HEALTHY)
    if not facts.is_complete("EventSubscription"):
        return Health(State.UNKNOWN, "the event subscriptions could not be read")
    advice = "list it in destination_ids of an EventSubscription"
    return Health(State.DEGRADED, "no event subscription sends to it", advice, Actor.YOU)


KIND = Kind(
    spec=EventDestination,
    path="/event_destinations",
    list_key="event_destinations",
    id_prefix="ed_",
    health=_check_destination,
    example="""
        target:
          metrics:
            api_key: {from_env: METRICS_API_KEY}
            service: edge
            site: eu.example.com
    """,
)

"""Event destination."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical
from reconciler.kinds.types.fields import Deferred, Description, Metadata, NonEmpty, Text
from reconciler.model.fields.annotations import ImmutablePart, InputOnly, Sensitive
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


def _one_of(part: Part, called: str) -> Iterator[Finding]:
    """Exactly one member is set."""
    members = tuple(type(part).model_fields)
    found = [name for name in members if getattr(part, name) is not None]
    if not found:
        yield Finding((), f"has no {called}", f"set exactly one of {', '.join(members)}", code="missing-field")
    for extra in found[1:]:
        yield Finding(
            (extra,), f"is a second {called} beside {found[0]}", "keep exactly one", code="conflicting-fields"
        )


class Role(Part):
    """A role that the platform assumes."""

    role_arn: Annotated[NonEmpty, Doc("The role's name at the cloud.")]


class Creds(Part):
    """Long-term keys."""

    cloud_access_key_id: Annotated[NonEmpty, Doc("The key's id.")]
    cloud_secret_access_key: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The key's secret.")]


class CloudAuth(Part):
    """How the platform signs in at the cloud: exactly one of its members."""

    role: Annotated[Role | None, Doc("Assume a role.")] = None
    creds: Annotated[Creds | None, Doc("Use long-term keys.")] = None

    def findings(self) -> Iterator[Finding]:
        yield from _one_of(self, "way to sign in")


class Delivery(Part):
    """A managed delivery stream."""

    auth: CloudAuth
    delivery_stream_arn: Annotated[NonEmpty, Doc("The stream's name at the cloud.")]


class Stream(Part):
    """A data stream."""

    auth: CloudAuth
    stream_arn: Annotated[NonEmpty, Doc("The stream's name at the cloud.")]


class Logs(Part):
    """A log group."""

    auth: CloudAuth
    log_group_arn: Annotated[NonEmpty, Doc("The group's name at the cloud.")]


class Metrics(Part):
    """A metrics vendor."""

    api_key: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The key for the vendor's intake.")]
    tags: Annotated[Text, Doc("Tags on every event.")] = ""
    service: Annotated[Text, Doc("The service the events are filed under.")] = ""
    site: Annotated[Text, Doc("The vendor's site.")] = ""


class Ingestion(Part):
    """A log-ingestion endpoint."""

    tenant_id: Annotated[NonEmpty, Doc("The directory the client belongs to.")]
    client_id: Annotated[NonEmpty, Doc("The client that signs in.")]
    client_secret: Annotated[NonEmpty, InputOnly, Sensitive, Doc("The client's secret.")]
    logs_ingestion_uri: Annotated[NonEmpty, Doc("Where logs are sent.")]
    data_collection_rule_id: Annotated[NonEmpty, Doc("The rule that takes them in.")]
    data_collection_stream_name: Annotated[NonEmpty, Doc("The stream within the rule.")]


class Target(Part):
    """Where events go: exactly one of its members."""

    delivery: Delivery | None = None
    stream: Stream | None = None
    logs: Logs | None = None
    metrics: Metrics | None = None
    ingestion: Ingestion | None = None

    def findings(self) -> Iterator[Finding]:
        yield from _one_of(self, "target")


class EventDestination(Spec):
    """A place outside that takes in events. It receives none until a subscription names it."""

    target: Annotated[Target, ImmutablePart(canonical.member, "target member")]
    format: Annotated[Literal["json"], Deferred, Doc("How events are written.")] = "json"
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=EventDestination,
    path="/event_destinations",
    list_key="event_destinations",
    id_prefix="ed_",
    example="""
        target:
          metrics:
            api_key: {from_env: METRICS_API_KEY}
            service: edge
            site: eu.example.com
    """,
)

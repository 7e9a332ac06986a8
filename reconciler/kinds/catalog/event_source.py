"""Source of an event subscription."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.catalog.event_subscription import EventFields, EventFilter, unknown_type
from reconciler.kinds.types.fields import EventType, Id
from reconciler.model.fields.annotations import Immutable, PathOnly, RefTo, ServerDefault
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind, Parent, Wire
from reconciler.model.problem import Finding


class EventSource(Spec):
    """One event type of an event subscription."""

    subscription_id: Annotated[
        Id, PathOnly, Immutable, RefTo("EventSubscription"), Doc("The event subscription that the source belongs to.")
    ]
    type: Annotated[EventType, Immutable, Doc("The event type with its version, such as `ip_policy_created.v0`.")]
    fields: Annotated[EventFields, Immutable, ServerDefault] = []
    filter: Annotated[EventFilter, Immutable, ServerDefault] = ""

    def findings(self) -> Iterator[Finding]:
        yield from unknown_type(self.type)


KIND = Kind(
    spec=EventSource,
    path="/event_subscriptions/{subscription_id}/sources",
    list_key="sources",
    key="type",
    identity=("subscription_id", "type"),
    unique=True,
    part_of=Parent("EventSubscription", field="subscription_id", embedded="sources", inline="sources"),
    wire=Wire(untimed=True),
    example="""
        subscription_id: {ref: EventSubscription/audit}
        type: ip_policy_updated.v0
    """,
)

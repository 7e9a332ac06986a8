"""Events: records, for each change of an object, the deliveries that the platform would make to event destinations.

Nothing is sent. The latest `KEPT` deliveries of each destination can be read at `GET
/_sandbox/deliveries?destination=ed_…`. They are written in the transaction of the change and contain the object as
responses return it, without write-only values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct, field

from reconciler.model.value import Json
from reconciler.sandbox.base import certificates
from reconciler.sandbox.base.database import Database, Document, Stored

KEPT = 1000
_COLLECTION = "Delivery"
_SOURCE, _SUBSCRIPTION, _DESTINATION = "EventSource", "EventSubscription", "EventDestination"

ChangeType = Literal["created", "updated", "deleted"]

SUBJECTS = {
    "APIKey": "api_key",
    "CertificateAuthority": "certificate_authority",
    "EventDestination": "event_destination",
    "EventSubscription": "event_subscription",
    "IPPolicy": "ip_policy",
    "IPPolicyRule": "ip_policy_rule",
    "IPRestriction": "ip_restriction",
    "ReservedAddress": "tcp_address",
    "ReservedDomain": "domain",
    "SSHCertificateAuthority": "ssh_certificate_authority",
    "SSHCredential": "ssh_public_key",
    "SSHHostCertificate": "ssh_host_certificate",
    "SSHUserCertificate": "ssh_user_certificate",
    "Secret": "secret",
    "TLSCertificate": "tls_certificate",
    "TunnelCredential": "tunnel_credential",
    "Vault": "vault",
}
"""The kinds whose changes are events, and their names in event types."""

SESSION_START, SESSION_STOP = "agent_session_start.v0", "agent_session_stop.v0"
_TEST = "test.v0"  # the event that verifies a destination; not available to subscriptions


Show = Callable[[Stored], Document]
"""Renders an object as a response returns it."""


class Events:
    def __init__(self, database: Database) -> None:
        self._database = database

    def record_changes(self, show: Show) -> None:
        """Records the events of the transaction's changes. A change of a source is an update of its subscription."""
        changes = _Changes()
        for before, after in self._database.changes():
            changes.add(before, after)
        for (collection, parent, identity), (before, after) in changes.objects.items():
            if parent == "" and identity in changes.sources and after is None and before is None:
                before = after = self._database.find(collection, identity)
            change = _classify_change(before, after, identity in changes.sources)
            name = self._type_of(collection, change) if change else ""
            stored = after or before
            if name and stored is not None:
                about = show(stored)
                if change == "deleted" and collection == _SUBSCRIPTION:
                    about = {**about, "sources": [show(stored) for stored in changes.sources.get(identity, ())]}
                self.record(name, about)
            if change == "deleted" and collection == _DESTINATION:
                self._database.trim(_COLLECTION, identity, 0)

    def _type_of(self, collection: str, change: ChangeType) -> str:
        """The event type of a change; empty if no subscription has it."""
        subject = SUBJECTS.get(collection)
        name = f"{subject}_{change}.v0"
        return name if subject is not None and self._database.parents(_SOURCE, name) else ""

    def record(self, name: str, about: Document) -> None:
        """Records an event for each destination of the subscriptions to its type."""
        event: Document = {}
        for subscription, destination in self._find_subscribers(name):
            event = event or self._event(name, about)
            self._deliver(destination, event, subscription)

    def verify(self, destination: str) -> None:
        """Records the test event of a new destination (`verify_with_test_event`)."""
        self._deliver(destination, self._event(_TEST, {}), None)

    def deliveries(self, destination: str) -> list[Json]:
        """The recorded deliveries of a destination, oldest first."""
        return [stored.body for stored in reversed(self._database.page(_COLLECTION, destination))]

    def _find_subscribers(self, name: str) -> Iterator[tuple[str, str]]:
        for identity in self._database.parents(_SOURCE, name):
            subscription = self._database.find(_SUBSCRIPTION, identity)
            for destination in subscription.body["destination_ids"] if subscription else ():
                yield identity, destination

    def _event(self, name: str, about: Document) -> Document:
        return {
            "event_id": self._database.new_id("ev_"),
            "event_type": name,
            "event_timestamp": certificates.stamp(self._database.now()),
            "object": about,
        }

    def _deliver(self, destination: str, event: Document, subscription: str | None) -> None:
        identity = self._database.new_id("evd_")
        body = {"id": identity, "destination_id": destination, "subscription_id": subscription, "event": event}
        self._database.insert(_COLLECTION, identity, body, destination)
        self._database.trim(_COLLECTION, destination, KEPT)


class _Changes(Struct, frozen=True):
    """The objects that one transaction changed, each at the start and at the end of the transaction.

    `sources` holds the created and deleted sources by subscription.
    """

    objects: dict[tuple[str, str, str], tuple[Stored | None, Stored | None]] = field(default_factory=dict)
    sources: dict[str, list[Stored]] = field(default_factory=dict)

    def add(self, before: Stored | None, after: Stored | None) -> None:
        stored = after or before
        assert stored is not None
        if stored.collection == _SOURCE:
            self.sources.setdefault(stored.parent, []).append(stored)
            self.objects.setdefault((_SUBSCRIPTION, "", stored.parent), (None, None))
            return
        key = (stored.collection, stored.parent, stored.id)
        first = self.objects[key][0] if key in self.objects else before
        self.objects[key] = (first or before, after)


def _classify_change(before: Stored | None, after: Stored | None, within: bool) -> ChangeType | None:
    """The type of the change from `before` to `after`, None if nothing changed; `within`: a part of it changed."""
    if before is None or after is None:
        return "created" if after is not None else "deleted" if before is not None else None
    return "updated" if within or _public(before) != _public(after) else None


def _public(stored: Stored) -> Document:
    return {name: value for name, value in stored.body.items() if not name.startswith("_")}

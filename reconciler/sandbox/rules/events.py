"""What the platform refuses of event subscriptions and their sources; `base.event_targets` has the destinations."""

from __future__ import annotations

from reconciler.sandbox.base import vocabulary
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.base.event_targets import check_target
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

REQUIRED: dict[str, dict[str, Cause]] = {
    "EventSource": {"type": refusal.EVENT_TYPE_MISSING},
    "EventDestination": {"target": refusal.REQUIRED},
}


def _check_source(draft: Draft, world: World) -> None:
    refusal.choice(draft.doc["type"], vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)


def _check_subscription(draft: Draft, world: World) -> None:
    types = [source["type"] for source in draft.doc["sources"] or []]
    for each in types:
        if not each:
            raise refusal.EVENT_TYPE_MISSING()
        refusal.choice(each, vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)
        if types.count(each) > 1:
            raise refusal.SOURCE_DUPLICATE(value=each)


def _check_destination(draft: Draft, world: World) -> None:
    check_target(draft)


RULES: dict[str, Rule] = {
    "EventSource": _check_source,
    "EventSubscription": _check_subscription,
    "EventDestination": _check_destination,
}

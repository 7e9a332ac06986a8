"""Validation of event subscriptions and sources. `base.event_targets` validates destinations."""

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
    refusal.check_choice(draft.doc["type"], vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)


def _check_subscription(draft: Draft, world: World) -> None:
    types = [source["type"] for source in draft.doc["sources"] or []]
    for type_ in types:
        if not type_:
            raise refusal.EVENT_TYPE_MISSING()
        refusal.check_choice(type_, vocabulary.EVENT_TYPES, refusal.EVENT_TYPE)
        if types.count(type_) > 1:
            raise refusal.SOURCE_DUPLICATE(value=type_)


def _check_destination(draft: Draft, world: World) -> None:
    check_target(draft)


RULES: dict[str, Rule] = {
    "EventSource": _check_source,
    "EventSubscription": _check_subscription,
    "EventDestination": _check_destination,
}

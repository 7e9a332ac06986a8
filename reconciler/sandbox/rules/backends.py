"""Validation of backends."""

from __future__ import annotations

from reconciler.sandbox.base import vocabulary
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

REQUIRED: dict[str, dict[str, Cause]] = {"StaticBackend": {"address": refusal.STATIC_ADDRESS}}


_MOST_NESTED = 10  # the platform's limit is not documented


def _check_failover(draft: Draft, world: World) -> None:
    nested = sum(backend.startswith(draft.kind.id_prefix) for backend in draft.doc["backends"])
    if nested > _MOST_NESTED:
        raise refusal.FAILOVER_NESTED(most=_MOST_NESTED, count=nested)
    seen, waiting = set[str](), [backend for backend in draft.doc["backends"] if backend]
    while waiting:
        identity = waiting.pop()
        if identity == draft.id:
            is_weighted = draft.kind.name == "WeightedBackend"
            raise (refusal.WEIGHTED_CYCLE if is_weighted else refusal.FAILOVER_CYCLE)(id=identity)
        if identity not in seen:
            seen.add(identity)
            found = world.find(identity)
            waiting += list(found.body.get("backends", [])) if found else []


def _check_response(draft: Draft, world: World) -> None:
    if not 100 <= draft.doc["status_code"] <= 599:
        raise refusal.STATUS_CODE(value=draft.doc["status_code"])
    draft.doc["headers"] = {name.lower(): value for name, value in draft.doc["headers"].items()}


def _check_weighted(draft: Draft, world: World) -> None:
    for identity, weight in draft.doc["backends"].items():
        if not 0 <= weight <= 10_000:
            raise refusal.WEIGHT(id=identity, value=weight)
    _check_failover(draft, world)


def _check_static(draft: Draft, world: World) -> None:
    address = draft.doc["address"]
    host, colon, _ = address.strip().rpartition(":")
    if not colon or address.strip().endswith("]"):
        raise refusal.STATIC_ADDRESS(value=address)
    if not host:
        raise refusal.STATIC_HOST(value=address)
    if not vocabulary.is_address(vocabulary.hostport(address)):
        raise refusal.STATIC_INVALID(value=address)


RULES: dict[str, Rule] = {
    "FailoverBackend": _check_failover,
    "HTTPResponseBackend": _check_response,
    "WeightedBackend": _check_weighted,
    "StaticBackend": _check_static,
}

"""Whether a plan file still holds: it was made for these manifests, and the platform is as it was then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from reconciler import kinds
from reconciler.cli import exits, talk
from reconciler.model.address import Address
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Call, Plan, Seen
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Secret
from reconciler.planning.compare import shown
from reconciler.planning.register import Register
from reconciler.rendering import json
from reconciler.rendering.outline import in_words


def read(file: Path, stack: str, secrets: Iterable[Secret]) -> Plan:
    """The plan, with its secrets from where the manifests have them now. Stop if one is another by now."""

    def restore(source: str, digest: str) -> Secret:
        for each in secrets:
            if each.source == source and json.secret_digest(each, stack) == digest:
                return each
        raise exits.Stop(
            exits.STALE, f"error: the secret from {source} is not the one the plan was made with; plan again"
        )

    return json.read(talk.read(file), restore)


def refuse(planned: Plan, now: Plan, manifest: Manifest, snapshot: Snapshot) -> None:
    """Stop, naming each object that moved since the plan was made. `now` is the plan of this moment."""
    if planned.stack != now.stack:
        raise exits.Stop(exits.ERROR, f"error: this is a plan for the stack {planned.stack}, not {now.stack}")
    if planned.manifest_digest != now.manifest_digest:
        raise exits.Stop(exits.STALE, "error: the manifests changed after the plan was made; plan again")
    moved = list(_moved(planned, now, Register.of(manifest, snapshot, kinds.every())))
    if moved:
        raise exits.Stop(exits.STALE, *moved, "error: the platform changed after the plan was made; plan again")


def _moved(planned: Plan, now: Plan, register: Register) -> Iterator[str]:
    changes = {change.address: change for change in now.changes}
    calls = {call.id: _alone(call) for call in now.calls}
    for change in planned.changes:
        theirs = [call for call in planned.calls if call.address == change.address]
        same = changes.get(change.address) == change and all(calls.get(each.id) == _alone(each) for each in theirs)
        seen, live = planned.seen.get(change.address), _live(change.address, planned, now, register)
        told = list(_differences(change.address, seen, live))
        if told or not same:
            yield from told or [f"{change.address}: what has to be done is different now"]


def _differences(address: Address, seen: Seen | None, live: Seen | None) -> Iterator[str]:
    if seen is None or live is None:
        if live is not None:
            yield f"{address}: {live.id} exists now"
        elif seen is not None:
            yield f"{address}: {seen.id} is gone"
        return
    if seen.id != live.id:
        yield f"{address}: was {seen.id}, is now {live.id}"
    for name in sorted(seen.fields.keys() | live.fields.keys()):
        old, new = seen.fields.get(name), live.fields.get(name)
        if old != new:
            yield f"{address}.{name}: was {in_words(old)}, is now {in_words(new)}"


def _live(address: Address, planned: Plan, now: Plan, register: Register) -> Seen | None:
    """The object as it is, also when nothing has to be done to it any more."""
    if address in now.seen:
        return now.seen[address]
    before = planned.seen.get(address)
    live = register.by_locator.get((address.kind, before.id)) if before else None
    if live is None:
        owned = register.by_owner.get(address, [])
        live = owned[0] if len(owned) == 1 else None
    if live is None:
        return None
    kind = kinds.get(address.kind)
    return Seen(live.locator, shown(kind, register.form(kind, live), address))


def _alone(call: Call) -> Call:
    """A plan of fewer resources waits for fewer calls."""
    return replace(call, needs=())

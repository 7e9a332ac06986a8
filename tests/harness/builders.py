"""Builders of declarations, live objects, snapshots, plans and accounts for tests.

`declare` returns a declaration as in a manifest, `live` an object as in a list response, with an owner record if it is
managed. `build_account` applies declarations to an account in memory, `apply_to` applies others to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import canonical_spec, collect_applied, digests, leaf_at
from reconciler.model.change import Change, FieldChange, Order
from reconciler.model.fields.field import Field
from reconciler.model.manifest import Declaration, Delivery, Ensure, Lifecycle, Manifest
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.problem import Position
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.model.value import Ref, Secret
from reconciler.planning import planner
from reconciler.planning.comparing.last_applied import LastApplied
from reconciler.planning.planner import PlanOptions
from tests.harness.world import RandomAccount, order_last_first

KINDS = kinds.every()
STACK = "laws"  # as `World` has it
INTENT = "intent-0"
LENIENT = PlanOptions(
    allow={
        (what, scope): 99
        for what in ("delete", "delete-protected", "update", "adopt")
        for scope in ("*", *(kind.name for kind in KINDS))
    }
)


def at(text: str) -> Address:
    return Address.parse(text)


def ref(text: str, output: str = "id") -> Ref:
    return Ref(at(text), output)


def secret(text: str, source: str = "env:SECRET") -> Secret:
    return Secret(text, source)


def declare(
    address: str,
    spec: Mapping[str, Any] | None = None,
    *,
    id: str | None = None,
    ensure: Ensure = Ensure.PRESENT,
    moved: Iterable[str] = (),
    deliver: bool = True,
    **lifecycle: Any,
) -> Declaration:
    """`lifecycle`: settings as in a manifest, such as protect, ignore, adopt, replace."""
    where = at(address)
    one_time = kinds.get(where.kind).one_time
    return Declaration(
        where,
        dict(spec or {}),
        Position("m.yaml", 1, 1),
        id=id,
        ensure=ensure,
        lifecycle=Lifecycle(**{**lifecycle, "ignore": list(lifecycle.get("ignore", ()))}),
        moved=tuple(map(at, moved)),
        deliver={one_time: Delivery("to_file", f"secrets/{where.name}")} if one_time and deliver else {},
    )


def record(
    address: str,
    was: Mapping[str, Any] | None = None,
    *,
    stack: str = STACK,
    intent: str = INTENT,
    **flags: Any,
) -> Owner:
    """The owner record of an object to which `was` was applied last."""
    where = at(address)
    kind = kinds.get(where.kind)
    applied = collect_applied(kind, canonical_spec(kind, was)) if was is not None else {}
    return Owner(stack, where, intent, digests(applied, intent), **flags)


def last_applied(kind: str = "TLSEdge", salt: str = "i", **spec: Any) -> LastApplied:
    known = kinds.get(kind)
    return LastApplied(digests(collect_applied(known, canonical_spec(known, spec)), salt), salt)


def find_leaf(path: str, kind: str = "TLSEdge") -> tuple[str, Field, Field]:
    """A path with its leaf and the top-level field, as functions of `comparing` take them."""
    known = kinds.get(kind)
    leaf = leaf_at(known.fields, path)
    assert leaf is not None
    return path, leaf, known.by_name[path.partition(".")[0]]


def live(
    kind: str, id: str, body: Mapping[str, Any] | None = None, *, owner: Owner | None = None, parent: str | None = None
) -> Live:
    """`body` as in a response; its `metadata` is the text of the user."""
    response: dict[str, Any] = {kinds.get(kind).key: id, **(body or {})}
    if owner is not None:
        response["metadata"] = owners.write(response.get("metadata") or "", owner)
    return Live(kind, id, response, parent)


def snapshot(
    *objects: Live,
    bindings: Mapping[str, Binding] | None = None,
    receipts: Iterable[str] = (),
    undelivered: Iterable[str] = (),
    cut: Iterable[str] = (),
    remembered: bool = False,
) -> Snapshot:
    """A snapshot. `cut`: kinds with an incomplete list; `remembered`: an apply used the store before."""
    found: dict[str, list[Live]] = defaultdict(list)
    for live_object in objects:
        found[live_object.kind].append(live_object)
    return Snapshot(
        {
            kind.name: Listing(tuple(found[kind.name]), kind.name not in cut, "cut" if kind.name in cut else "")
            for kind in KINDS
        },
        {at(address): binding for address, binding in (bindings or {}).items()},
        frozenset(receipts),
        frozenset(undelivered),
        is_remembered=remembered,
    )


def manifest(*declared: Declaration) -> Manifest:
    return Manifest(STACK, {declaration.address: declaration for declaration in declared})


def make_plan(*declared: Declaration, seen: Snapshot | None = None, options: PlanOptions | None = None) -> Plan:
    return planner.plan(manifest(*declared), seen or snapshot(), KINDS, options or PlanOptions())


# --- accounts ---------------------------------------------------------------------------------------------------------


def build_account(*declared: Declaration) -> RandomAccount:
    """An account to which the declarations were applied, and which is in sync."""
    return apply_to(RandomAccount(KINDS), *declared)


def apply_to(world: RandomAccount, *declared: Declaration, options: PlanOptions = LENIENT) -> RandomAccount:
    """The same account after the declarations were applied: each call was accepted, and the next plan is empty."""
    applied_plan = plan_on(world, *declared, options=options)
    assert applied_plan.errors == ()
    check_replacements(applied_plan)
    world.log.clear()
    other = world.copy()
    world.carry_out(applied_plan)
    # Calls without unmet needs run concurrently: each order that respects the needs must have the same result.
    other.carry_out(replace(applied_plan, calls=order_last_first(applied_plan.calls)))
    assert plan_on(other, *declared, options=options).is_empty
    next_plan = plan_on(world, *declared, options=options)
    assert (next_plan.changes, next_plan.calls, next_plan.errors) == ((), (), ())
    return world


def check_replacements(plan: Plan) -> None:
    """Fails unless each replacement creates and deletes in the order that the plan shows, for any concurrency."""
    before: dict[str, set[str]] = {}
    for call in plan.calls:
        before[call.id] = set(call.needs).union(*(before[need] for need in call.needs))
    for change in plan.changes:
        own = [call for call in plan.calls if call.address == change.address]
        deletes = {call.id for call in own if call.verb is Verb.DELETE and call.target == change.id}
        others = {call.id for call in own if call.verb is not Verb.DELETE}
        if change.order is Order.CREATE_FIRST:
            assert all(others <= before[delete] for delete in deletes)
        elif change.order is Order.DELETE_FIRST:
            assert all(deletes <= before[other] for other in others)


def plan_on(world: RandomAccount, *declared: Declaration, options: PlanOptions = LENIENT) -> Plan:
    return planner.plan(manifest(*declared), world.snapshot(), KINDS, options)


def body_of(world: RandomAccount, kind: str, n: int = 0) -> dict[str, Any]:
    """The n-th object of a kind; tests change it as by hand."""
    return [body for (name, _), body in world.objects.items() if name == kind][n]


def id_of(world: RandomAccount, kind: str, n: int = 0) -> str:
    return str(body_of(world, kind, n)["id"])


# --- contents of a plan -----------------------------------------------------------------------------------------------


def actions(plan: Plan) -> dict[str, str]:
    return {str(change.address): str(change.action) for change in plan.changes}


def change_of(plan: Plan, address: str) -> Change:
    (found,) = [change for change in plan.changes if change.address == at(address)]
    return found


def fields(plan: Plan) -> dict[str, FieldChange]:
    """The fields of the only change of a plan, by path."""
    (change,) = plan.changes
    return {field.path: field for field in change.fields}


def requests(plan: Plan) -> list[str]:
    """`PATCH /edges/tls/edgtls_1` for each call, in order."""
    return [f"{call.method} {call.path}" for call in plan.calls]


def call_of(plan: Plan, id: str) -> Call:
    (found,) = [call for call in plan.calls if call.id == id]
    return found


def index_of(plan: Plan, id: str) -> int:
    return [call.id for call in plan.calls].index(id)


def errors(plan: Plan) -> list[str]:
    return [problem.text for problem in plan.errors]

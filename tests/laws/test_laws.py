"""The laws of planning, over random worlds: rest, still, same, order, hands off, nothing."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.manifest import Declaration, Manifest, Unread
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Severity
from reconciler.model.snapshot import Binding, Listing, LiveKey, Snapshot
from reconciler.model.value import Ref
from reconciler.operations.applying import plan_rules
from reconciler.planning.planner import PlanOptions, plan
from reconciler.project.documents import validation
from tests.harness.tiers import examples, full
from tests.harness.world import RandomAccount, dump, order_last_first
from tests.laws.manifests import manifests, rename_some

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

KINDS = kinds.every()
SCOPES = ("*", *(kind.name for kind in KINDS))
EVERYTHING = PlanOptions(
    allow={(what, scope): 99 for what in ("delete", "delete-protected", "update") for scope in SCOPES}
)
law = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# Kinds without metadata whose names are unique would be adopted: `EVERYTHING` approves adoption too.
_OTHER_NAMES = {"example.com": "example.org", "bot ": "robot ", "service ": "their service ", "AAAA": "BBBB"}


def make_plan(manifest: Manifest, world: RandomAccount, options: PlanOptions = EVERYTHING) -> Plan:
    return plan(manifest, world.snapshot(), KINDS, options)


def move_to_other_stack(manifest: Manifest) -> Manifest:
    """The manifest of another stack, with other unique names."""

    def rename_values(value: Any) -> Any:
        match value:
            case str():
                for ours, theirs in _OTHER_NAMES.items():
                    value = value.replace(ours, theirs)
                return value
            case dict():
                return {key: rename_values(item) for key, item in value.items()}
            case list():
                return [rename_values(item) for item in value]
        return value

    declared = {
        address: replace(declaration, spec=rename_values(dict(declaration.spec)))
        for address, declaration in manifest.declarations.items()
        if address.kind != "IPRestriction"  # of each type an account has one
    }
    return Manifest("another", declared)


def apply_manifest(manifest: Manifest, world: RandomAccount | None = None) -> RandomAccount:
    world = world or RandomAccount(KINDS)
    new_plan = make_plan(manifest, world)
    assert new_plan.errors == ()
    world.carry_out(new_plan)
    return world


@law
@given(manifests())
def test_an_applied_manifest_is_in_sync(manifest: Manifest) -> None:
    world = apply_manifest(manifest)
    again = make_plan(manifest, world)
    assert (again.changes, again.calls, again.problems) == ((), (), ())


@law
@given(manifests(), manifests())
def test_any_manifest_can_be_applied_after_any_other(before: Manifest, after: Manifest) -> None:
    world = apply_manifest(before)
    change = make_plan(after, world)
    # What the planner cannot do: circular references, or an owner that is no longer declared.
    assume(not change.problems)
    other = world.copy()
    world.carry_out(change)
    assert make_plan(after, world).changes == ()
    # Calls whose needs are met run at once: any order that respects the needs leads to the same.
    other.carry_out(replace(change, calls=order_last_first(change.calls)))
    assert make_plan(after, other).changes == ()


@settings(law, max_examples=examples(25))
@given(manifests(), manifests())
def test_each_plan_satisfies_the_rules_of_plan_files(before: Manifest, after: Manifest) -> None:
    world = apply_manifest(before)
    change = make_plan(after, world)
    assume(not change.problems)
    # Some of the texts in these worlds are none that the rules of their kinds accept.
    odd = {str(address) for address, declared in after.declarations.items() if not _is_valid(declared)}
    assert [problem for problem in plan_rules.find_problems(change) if problem.subject not in odd] == []


def _is_valid(declared: Declaration) -> bool:
    try:
        valid = kinds.get(declared.address.kind).spec.model_validate(declared.spec)
    except ValidationError:
        return False
    return not any(finding.severity is Severity.ERROR for finding in validation.findings_of(valid))


@law
@given(manifests())
def test_a_first_plan_creates_each_declaration_once(manifest: Manifest) -> None:
    new_plan = make_plan(manifest, RandomAccount(KINDS))
    assert sorted(change.address for change in new_plan.changes) == sorted(manifest.declarations)
    assert {change.action for change in new_plan.changes} <= {Action.CREATE}


@law
@given(manifests(), st.data())
def test_a_field_changed_on_the_platform_is_drift(manifest: Manifest, data: st.DataObject) -> None:
    world = apply_manifest(manifest)
    described = [(name, locator) for (name, locator), body in world.objects.items() if "description" in body]
    assume(described)
    key = data.draw(st.sampled_from(described))
    world.objects[key]["description"] += " by hand"
    again = make_plan(manifest, world)
    assert [(change.id, [(field.path, field.changed_by) for field in change.fields]) for change in again.changes] == [
        (key[1].rsplit("/", 1)[-1], [("description", ChangedBy.PLATFORM)])
    ]
    world.carry_out(again)
    assert make_plan(manifest, world).changes == ()


@law
@given(manifests(), st.data())
def test_a_module_removed_by_hand_is_the_only_update(manifest: Manifest, data: st.DataObject) -> None:
    world = apply_manifest(manifest)
    present = [
        (key, field)
        for key, body in world.objects.items()
        for field in world.by_name[key[0]].fields
        if field.module and body.get(field.name) is not None
    ]
    assume(present)
    key, module = data.draw(st.sampled_from(present))
    world.objects[key][module.name] = None
    again = make_plan(manifest, world)
    assert [(call.method, call.path.rsplit("/", 1)[-1]) for call in again.calls if isinstance(call.path, str)] == [
        ("PUT", module.name)
    ]
    assert {field.changed_by for change in again.changes for field in change.fields} == {ChangedBy.PLATFORM}


@law
@given(manifests(), manifests(), st.randoms(use_true_random=False))
def test_the_order_of_declarations_and_objects_does_not_change_the_plan(
    before: Manifest, after: Manifest, random: Any
) -> None:
    world = apply_manifest(before)
    snapshot = world.snapshot()
    declarations = list(after.declarations.items())
    random.shuffle(declarations)
    listings = {
        name: Listing(tuple(random.sample(listing.objects, len(listing.objects))))
        for name, listing in random.sample(list(snapshot.listings.items()), len(snapshot.listings))
    }
    shuffled = plan(
        replace(after, declarations=dict(declarations)),
        Snapshot(listings, snapshot.bindings, snapshot.receipts),
        tuple(random.sample(KINDS, len(KINDS))),
        EVERYTHING,
    )
    assert shuffled == plan(after, snapshot, KINDS, EVERYTHING)


@law
@given(manifests(), manifests(), st.data())
def test_the_fast_path_and_the_full_comparison_have_the_same_plan(
    before: Manifest, after: Manifest, data: st.DataObject
) -> None:
    world = apply_manifest(before)
    for key in data.draw(st.lists(st.sampled_from(sorted(world.objects)), max_size=3)) if world.objects else ():
        body = world.objects[key]
        name = data.draw(st.sampled_from(sorted(body)))
        body[name] = data.draw(st.sampled_from([None, "", "by hand", False, True, 0, [], {}, ["by hand"], body[name]]))
    manifest = data.draw(st.sampled_from([before, after]))
    at_a_glance = make_plan(manifest, world)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reconciler.planning.planner.is_up_to_date", lambda *_: None)
        assert at_a_glance == make_plan(manifest, world)


@law
@given(manifests(), manifests(), manifests())
def test_undeclared_objects_are_never_changed(foreign: Manifest, before: Manifest, after: Manifest) -> None:
    world = RandomAccount(KINDS, stack="another")
    world.carry_out(plan(move_to_other_stack(foreign), world.snapshot(), KINDS, EVERYTHING))
    world.bindings.clear()
    theirs = copy.deepcopy(world.objects)
    world.stack = "laws"
    for manifest in (before, after):
        new_plan = make_plan(manifest, world)
        if not new_plan.problems:  # a unique name that another holds is refused, and nothing happens
            world.carry_out(new_plan)
    assert {key: body for key, body in world.objects.items() if key in theirs} == theirs


@law
@given(manifests(), manifests(), st.booleans())
def test_each_guarded_delete_is_counted_by_an_approval(before: Manifest, after: Manifest, is_destroyed: bool) -> None:
    world = apply_manifest(before)
    after = Manifest("laws", {}) if is_destroyed else after
    objects = {live.key: live for kind in KINDS for live in world.live(kind)}
    bound = {(address.kind, binding.id): address for address, binding in world.bindings.items()}
    protected = {
        address
        for manifest in (before, after)
        for address, declared in manifest.declarations.items()
        if declared.lifecycle.protect
    }
    new_plan = make_plan(after, world, PlanOptions(destroy=is_destroyed))
    assume(not new_plan.problems)
    world.carry_out(new_plan)  # as if all was approved
    gone = [objects[key] for key in sorted(objects.keys() - world.objects.keys())]
    needed: Counter[tuple[str, str]] = Counter()
    for live in gone:
        kind, address = world.by_name[live.kind], live.owner.address if live.owner is not None else bound[live.key]
        if address in protected:
            needed["delete-protected", kind.name] += 1
        elif kind.irreplaceable or kind.name == "BotUser":
            needed["delete", kind.name] += 1
    updated = [change for change in new_plan.changes if change.action is Action.UPDATE]
    for what, changed in (("delete", gone), ("update", updated)):
        if len(objects) >= 10 and 10 * len(changed) > 3 * len(objects) and not is_destroyed:
            needed[what, "*"] = len(changed)
    if not after.declarations and objects and not is_destroyed:
        needed["empty", "*"] = len(objects)
    assert {(approval.what, approval.kind): approval.count for approval in new_plan.missing_approvals} == needed


@law
@given(manifests())
def test_an_empty_manifest_deletes_exactly_the_managed_objects(manifest: Manifest) -> None:
    world = RandomAccount(KINDS)
    world.put(world.by_name["IPPolicy"], {"description": "by hand"})
    by_hand = dump(world)
    apply_manifest(manifest, world)
    empty = Manifest("laws", {})
    world.carry_out(make_plan(empty, world, replace(EVERYTHING, destroy=True)))
    assert dump(world) == by_hand
    assert make_plan(empty, world).changes == ()


@law
@given(manifests(), manifests())
def test_an_incomplete_list_is_unknown_and_its_kind_has_no_changes(before: Manifest, after: Manifest) -> None:
    world = apply_manifest(before)
    snapshot = world.snapshot()
    cut = {name: replace(listing, complete=False, why="cut") for name, listing in snapshot.listings.items()}
    blind = plan(after, Snapshot({**cut, "BotUser": Listing((), False, "cut")}), KINDS, EVERYTHING)
    assert (blind.changes, blind.calls) == ((), ())


@law
@given(manifests())
def test_a_target_changes_nothing_else(manifest: Manifest) -> None:
    world = apply_manifest(manifest)
    chosen = make_plan(Manifest("laws", {}), world, replace(EVERYTHING, targets=("IPPolicyRule/*",)))
    assert {change.address.kind for change in chosen.changes} <= {"IPPolicyRule"}


@law
@given(manifests(), manifests(), st.data())
def test_an_excluded_resource_is_unchanged_under_each_of_its_addresses(
    before: Manifest, after: Manifest, data: st.DataObject
) -> None:
    """Also where it is unknown which of them it means."""
    both = sorted(
        {declaration.kind for declaration in before.declarations}
        & {declaration.kind for declaration in after.declarations}
    )
    assume(both)
    kind = data.draw(st.sampled_from(both))
    chosen = data.draw(st.sampled_from([declaration for declaration in after.declarations if declaration.kind == kind]))
    gone = [
        declaration
        for declaration in before.declarations
        if declaration.kind == kind and declaration not in after.declarations
    ]
    formers = [*gone, *([] if chosen in gone else [chosen])]
    manifest = rename_some(after, "new", {chosen: formers})
    world = apply_manifest(before)
    without = make_plan(manifest, world, replace(EVERYTHING, excludes=(f"{kind}/new",)))
    deleted = {change.address for change in without.changes if change.action is Action.DELETE}
    assert not deleted & {*formers, Address(kind, "new")}


_TYPES = st.sampled_from(["ip_policy_created.v0", "ip_policy_updated.v0", "ip_policy_deleted.v0"])
_SOURCES = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.sampled_from("st"), _TYPES), min_size=1, max_size=3
).filter(lambda sources: len(set(sources.values())) == len(sources))


def _with_sources(sources: Mapping[str, tuple[str, str]]) -> Manifest:
    """Two subscriptions, and event sources by name, each with its subscription and type."""
    specs: dict[Address, dict[str, Any]] = {Address("EventSubscription", name): {} for name in "st"} | {
        Address("EventSource", name): {"subscription_id": Ref(Address("EventSubscription", parent)), "type": type_}
        for name, (parent, type_) in sources.items()
    }
    return Manifest(
        "laws", {address: Declaration(address, spec, Position("m.yaml", 1, 1)) for address, spec in specs.items()}
    )


@law
@given(_SOURCES, _SOURCES, st.data())
def test_bindings_of_several_declarations_to_one_child_never_block(
    before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]], data: st.DataObject
) -> None:
    world, manifest = apply_manifest(_with_sources(before)), _with_sources(after)
    sources = sorted(locator for name, locator in world.objects if name == "EventSource")
    for address in sorted(address for address in manifest.declarations if address.kind == "EventSource"):
        world.bindings[address] = Binding(data.draw(st.sampled_from(sources)))
    new_plan = make_plan(manifest, world)
    assert new_plan.problems == ()
    world.carry_out(new_plan)
    assert make_plan(manifest, world).changes == ()


@law
@given(manifests(), st.data())
def test_a_requested_replacement_is_applied_once(manifest: Manifest, data: st.DataObject) -> None:
    world = apply_manifest(manifest)
    assume(manifest.declarations)
    chosen = data.draw(st.sampled_from(sorted(manifest.declarations)))
    new_plan = make_plan(manifest, world, replace(EVERYTHING, to_replace=frozenset({chosen})))
    # What another object of ours stays on is not torn away from under it, nor the last rule of what needs one.
    assert all("still used by" in error.text or "left without any" in error.text for error in new_plan.errors)
    assume(not new_plan.errors)
    assert {change.action for change in new_plan.changes if change.address == chosen} == {Action.REPLACE}
    world.carry_out(new_plan)
    again = make_plan(manifest, world)
    assert (again.changes, again.problems) == ((), ())


@full
def test_random_manifests_cover_each_kind() -> None:
    # As their siblings, or with syntax that random text does not have.
    left_out = {"AgentIngress", "TLSCertificate"}
    assert {kind.name for kind in KINDS} - left_out == _draw()


def _draw() -> set[str]:
    met: set[str] = set()

    @settings(max_examples=120, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(manifests())
    def draw(manifest: Manifest) -> None:
        met.update(address.kind for address in manifest.declarations)

    draw()
    return met


# --- one wrong declaration does not hold the rest ---------------------------------------------------------------------


def _with_invalid(manifest: Manifest, *addresses: Address, has_unknown: bool = False) -> Manifest:
    """The manifest as it is read if these declarations, and perhaps a file, are invalid."""
    declared = {
        address: declaration for address, declaration in manifest.declarations.items() if address not in addresses
    }
    return replace(manifest, declarations=declared, unread=Unread(frozenset(addresses), has_unknown))


@law
@given(manifests(), manifests(), st.booleans())
def test_an_invalid_declaration_beside_others_adds_no_call(before: Manifest, after: Manifest, unknown: bool) -> None:
    """And keeps those of everything but deletes, moves and adoptions, which may be for an absence."""
    world = apply_manifest(before)
    whole = make_plan(after, world)
    partial = make_plan(_with_invalid(after, Address("IPPolicy", "invalid"), has_unknown=unknown), world)
    assert {call.id for call in partial.calls} <= {call.id for call in whole.calls}
    assert not [change for change in partial.changes if change.reason in (Reason.REMOVED, Reason.ADDED)]
    assume(not whole.problems)
    held = {problem.subject for problem in partial.errors}
    certain = {
        change.address
        for change in whole.changes
        if change.action in (Action.CREATE, Action.UPDATE) and str(change.address) not in held
    }
    assert certain <= {change.address for change in partial.changes}


@law
@given(manifests(), manifests(), st.data())
def test_a_declaration_that_becomes_invalid_adds_no_call_and_loses_no_object(
    before: Manifest, after: Manifest, data: st.DataObject
) -> None:
    assume(after.declarations)
    world = apply_manifest(before)
    wrong = data.draw(st.sampled_from(sorted(after.declarations)))
    whole, partial = make_plan(after, world), make_plan(_with_invalid(after, wrong), world)
    if not whole.errors:
        assert {call.id for call in partial.calls} <= {call.id for call in whole.calls}
    assert wrong not in {call.address for call in partial.calls}
    owned = {key for key, live in _own_objects(world).items() if live in (wrong, *after.declarations[wrong].moved)}
    world.carry_out(partial)
    assert owned <= _own_objects(world).keys()


def _own_objects(world: RandomAccount) -> dict[LiveKey, Address]:
    """The address in the owner record of each object that has one."""
    listings = world.snapshot().listings.values()
    return {live.key: live.owner.address for listing in listings for live in listing.objects if live.owner is not None}


@law
@given(manifests(), st.data())
def test_after_the_wrong_declaration_was_corrected_the_plan_is_the_same(
    manifest: Manifest, data: st.DataObject
) -> None:
    assume(manifest.declarations)
    wrong = data.draw(st.sampled_from(sorted(manifest.declarations)))
    world = RandomAccount(KINDS)
    partial = make_plan(_with_invalid(manifest, wrong), world)
    assume(not partial.blocking_errors)
    world.carry_out(partial)
    rest = make_plan(manifest, world)
    assume(not rest.errors)
    world.carry_out(rest)
    assert make_plan(manifest, world).changes == ()

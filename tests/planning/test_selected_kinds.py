"""The lists that a plan of selected resources needs: its changes are those of a plan with all lists."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.manifest import Manifest
from reconciler.planning.planner import PlanOptions, plan
from reconciler.planning.selected_kinds import find_needed_kinds, is_independent
from tests.harness.builders import declare, manifest
from tests.harness.tiers import examples
from tests.laws.manifests import manifests
from tests.laws.test_laws import KINDS, apply_manifest, law

TARGETS = st.lists(
    st.sampled_from([f"{kind.name}/{name}" for kind in KINDS for name in ("*", "a")] + ["*/a", "TLS*", "*Edge*/b"]),
    min_size=1,
    max_size=2,
)
OF_SELECTION = (
    *("changes", "calls", "problems", "approvals", "access", "additions"),
    *("observed", "bindings", "names", "users", "forecast"),
)


@settings(law, max_examples=examples(60))
@given(manifests(), manifests(), TARGETS, st.data())
def test_a_plan_of_selected_resources_needs_no_other_lists(
    before: Manifest, after: Manifest, targets: list[str], data: st.DataObject
) -> None:
    world = apply_manifest(before)
    for body in world.objects.values():
        if body.get("description") and data.draw(st.booleans()):
            body["description"] += " by hand"
    after = replace(after, declarations={**before.declarations, **after.declarations})
    options, snapshot = PlanOptions(targets=tuple(targets)), world.snapshot()
    needed = find_needed_kinds(after, KINDS, options)
    assume(needed is not None)
    listed = {name: listing for name, listing in snapshot.listings.items() if name in (needed or ())}
    of_listed = plan(after, replace(snapshot, listings=listed), KINDS, options)
    assume(is_independent(of_listed, replace(snapshot, listings=listed)))
    of_all = plan(after, snapshot, KINDS, options)
    for name in OF_SELECTION:
        assert getattr(of_listed, name) == getattr(of_all, name), name


DECLARED = manifest(declare("BotUser/b"), declare("IPPolicy/p"))


@pytest.mark.parametrize(
    ("glob", "needed"),
    [
        ("BotUser/b", {"BotUser"}),
        ("BotUser/*", {"BotUser"}),
        ("Bot*", {"BotUser"}),
        ("Vault/a", {"Vault", "Secret"}),
        ("Secret/a", {"Vault", "Secret"}),
        ("ReservedDomain/*", {"ReservedDomain", "AgentIngress", "TLSCertificate"}),
    ],
)
def test_the_family_and_the_references_of_selected_kinds_are_needed(glob: str, needed: set[str]) -> None:
    assert find_needed_kinds(DECLARED, kinds.list_planned(), PlanOptions(targets=(glob,))) == frozenset(needed)


@pytest.mark.parametrize("glob", ["TLSEdge/*", "IPPolicyRule/*"])
def test_all_kinds_that_decide_about_access_are_needed_if_a_selected_one_does(glob: str) -> None:
    needed = find_needed_kinds(DECLARED, kinds.list_planned(), PlanOptions(targets=(glob,)))
    assert needed is not None
    assert needed >= {kind.name for kind in kinds.list_planned() if kind.access is not None}
    assert needed.isdisjoint({"Vault", "EventDestination"})


@pytest.mark.parametrize(
    ("declared", "options"),
    [
        (DECLARED, PlanOptions()),
        (DECLARED, PlanOptions(excludes=("BotUser/*",))),
        (DECLARED, PlanOptions(targets=("*/b",))),
        (DECLARED, PlanOptions(targets=("BotUser/*",), destroy=True)),
        (DECLARED, PlanOptions(targets=("BotUser/*",), rule_changes=())),
        (manifest(), PlanOptions(targets=("BotUser/*",))),
    ],
)
def test_any_other_plan_needs_all_lists(declared: Manifest, options: PlanOptions) -> None:
    assert find_needed_kinds(declared, kinds.list_planned(), options) is None

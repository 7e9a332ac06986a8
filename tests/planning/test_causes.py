"""What changed a field since the last apply, for each combination of its three values."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model import owner_record
from reconciler.model.change import ChangedBy
from reconciler.model.value import Ref, Value
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.causes import find_cause
from reconciler.planning.comparing.last_applied import LastApplied
from reconciler.planning.comparing.leaf_differences import compare_hidden_leaves
from tests.harness.builders import (
    LENIENT,
    declare,
    fields,
    find_leaf,
    last_applied,
    live,
    make_plan,
    record,
    ref,
    snapshot,
)

EDGE = kinds.get("TLSEdge")
Module = dict[str, Any]
MODULES: list[Module | None] = [
    None,
    {"enabled": True, "ip_policy_ids": ["p"]},
    {"enabled": False, "ip_policy_ids": ["p"]},
    {"enabled": True, "ip_policy_ids": ["q"]},
]


def combine(platform: bool, git: bool) -> ChangedBy:
    return ChangedBy.BOTH if platform and git else ChangedBy.PLATFORM if platform else ChangedBy.GIT


def live_module(module: Module | None) -> Module:
    """The edge as in a response."""
    if module is None:
        return {"ip_restriction": None}
    policies = [{"id": policy} for policy in module["ip_policy_ids"]]
    return {"ip_restriction": {"enabled": module["enabled"], "ip_policies": policies}}


def find_module_causes(
    was: Module | None, now: Module | None, want: Module | None, *, bundled: bool
) -> dict[str, ChangedBy]:
    """The cause of each differing path in a plan for an edge to which `was` was applied."""
    before = {} if was is None else {"ip_restriction": was}
    owner = record("TLSEdge/e", before)
    if bundled:
        owner = owner._replace(applied=owner_record.fold(EDGE.by_name["ip_restriction"], owner.applied))
    edge = live("TLSEdge", "e", live_module(now), owner=owner)
    declared = declare("TLSEdge/e", {} if want is None else {"ip_restriction": want})
    plan = make_plan(declared, seen=snapshot(edge), options=LENIENT)
    return {path: change.changed_by for path, change in fields(plan).items()} if plan.changes else {}


@pytest.mark.parametrize("bundled", [False, True])
def test_each_leaf_of_a_module_has_the_cause_that_its_three_values_show(bundled: bool) -> None:
    for was, now, want in product(MODULES, repeat=3):
        if bundled and was is None:
            continue
        expected = {}
        if want is None and now is not None:
            # One change for the module, by Git only if the platform has everything that was applied.
            expected["ip_restriction"] = combine(was != now, was is not None)
        elif want is not None:
            for leaf, value in want.items():
                if now is not None and now[leaf] == value:
                    continue
                if bundled:  # one digest for the whole module does not show which leaf changed
                    expected[f"ip_restriction.{leaf}"] = combine(now != was, want != was)
                elif now is None:
                    expected[f"ip_restriction.{leaf}"] = combine(was is not None, was is None or was[leaf] != value)
                else:
                    expected[f"ip_restriction.{leaf}"] = combine(
                        was is None or was[leaf] != now[leaf], was is None or was[leaf] != value
                    )
        assert find_module_causes(was, now, want, bundled=bundled) == expected, (was, now, want)


def test_each_value_of_a_text_has_the_cause_that_its_three_values_show() -> None:
    for was, now, want in product(("", "x", "y"), repeat=3):
        edge = live("TLSEdge", "e", {"description": now}, owner=record("TLSEdge/e", {"description": was}))
        plan = make_plan(declare("TLSEdge/e", {"description": want}), seen=snapshot(edge))
        found = [change.changed_by for decided in plan.changes for change in decided.fields]
        assert found == ([] if now == want else [combine(now != was, want != was)]), (was, now, want)


@pytest.mark.parametrize(
    ("before", "cause"),
    [(None, ChangedBy.UNKNOWN), ({}, ChangedBy.GIT), ({"tls_termination": {}}, ChangedBy.PLATFORM)],
)
def test_a_missing_module_of_defaults_has_the_cause_of_the_module(
    before: dict[str, Any] | None, cause: ChangedBy
) -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/e", before) if before is not None else None)
    declared = declare("TLSEdge/e", {"tls_termination": {}}, id="e" if before is None else None)
    found = fields(make_plan(declared, seen=snapshot(edge)))
    assert {change.changed_by for change in found.values()} == {cause}


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind", "applied", "cause"),
    [
        # Unknown what was applied.
        ("description", "TLSEdge", LastApplied(None), ChangedBy.UNKNOWN),
        # No value was declared: only a declaration can differ from the choice of the platform.
        ("tls_termination.min_version", "TLSEdge", last_applied(tls_termination={}), ChangedBy.GIT),
        # The platform never moves an object to another parent.
        ("edge_id", "HTTPSEdgeRoute", LastApplied(None), ChangedBy.GIT),
        ("edge_id", "HTTPSEdgeRoute", last_applied("HTTPSEdgeRoute"), ChangedBy.GIT),
    ],
)
def test_some_causes_do_not_depend_on_the_values(path: str, kind: str, applied: LastApplied, cause: ChangedBy) -> None:
    for old, new in (("x", "y"), ("", "y"), ("x", "")):
        assert find_cause(*find_leaf(path, kind), old, new, applied) is cause


@pytest.mark.parametrize(
    ("old", "follows", "cause"),
    [
        ("was", False, ChangedBy.GIT),
        ("was", True, ChangedBy.FOLLOWS),
        ("by hand", False, ChangedBy.PLATFORM),
        ("by hand", True, ChangedBy.PLATFORM),
    ],
)
def test_an_unresolved_reference_follows_its_target_or_was_changed(old: str, follows: bool, cause: ChangedBy) -> None:
    questions: list[tuple[Ref, Value]] = []

    def is_followed(reference: Ref, value: Value) -> bool:
        questions.append((reference, value))
        return follows

    applied = replace(last_applied(description="was"), follows=is_followed)
    target = ref("IPPolicy/p")
    assert find_cause(*find_leaf("description"), old, target, applied) is cause
    assert questions == [(target, old)]


def test_a_list_of_references_follows_only_if_each_reference_follows() -> None:
    followed, new = ref("IPPolicy/p"), ref("IPPolicy/q")
    applied = replace(
        last_applied(ip_restriction={"ip_policy_ids": ["p"]}), follows=lambda reference, _: reference == followed
    )
    leaf = find_leaf("ip_restriction.ip_policy_ids")
    assert find_cause(*leaf, ["p"], [followed], applied) is ChangedBy.FOLLOWS
    assert find_cause(*leaf, ["p"], [followed, new], applied) is ChangedBy.GIT


def test_a_bundled_unresolved_reference_may_have_changed_in_git() -> None:
    field = EDGE.by_name["ip_restriction"]
    was = last_applied(ip_restriction={"ip_policy_ids": ["p"]})
    assert was.applied is not None
    bundled = replace(was, applied=owner_record.fold(field, was.applied), follows=lambda *_: True)
    want: Value = {"enabled": True, "ip_policy_ids": [ref("IPPolicy/p")]}
    same: Value = {"enabled": True, "ip_policy_ids": ["p"]}
    compared = bundled.compare_bundle(field, want, same)
    assert compared is not None
    assert (compared.platform, compared.git) == (False, None)
    leaf = find_leaf("ip_restriction.ip_policy_ids")
    assert find_cause(*leaf, ["p"], [ref("IPPolicy/p")], bundled, compared) is ChangedBy.FOLLOWS
    # The other leaf differs from what was applied: the bundle does not show which leaf Git changed.
    assert find_cause(*find_leaf("ip_restriction.enabled"), False, True, bundled, compared) is ChangedBy.GIT
    moved = bundled.compare_bundle(field, want, None)
    assert moved is not None
    assert (moved.platform, moved.git) == (True, None)
    assert was.compare_bundle(field, want, same) is None
    assert LastApplied(None).compare_bundle(field, want, same) is None


@pytest.mark.parametrize(
    ("value", "cause"), [(ref("TLSEdge/new"), ChangedBy.GIT), ("ec_1", ChangedBy.UNKNOWN), (None, None)]
)
def test_a_write_only_field_that_was_never_applied_is_new_if_its_target_is_new(
    value: Value, cause: ChangedBy | None
) -> None:
    _, _, field = find_leaf("endpoint_configuration_id", "ReservedAddress")
    found = compare_hidden_leaves(field, value, UNREAD, LastApplied(None))
    assert [difference.changed_by for difference in found] == ([cause] if cause is not None else [])

"""Whole plans: references, targets, observed objects, and bindings for the store."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Binding
from reconciler.planning import planner
from reconciler.planning.planner import PlanOptions
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.builders import (
    KINDS,
    LENIENT,
    actions,
    at,
    build_account,
    declare,
    errors,
    live,
    make_plan,
    plan_on,
    record,
    ref,
    requests,
    snapshot,
)
from tests.harness.tiers import examples
from tests.harness.world import RandomAccount
from tests.laws.manifests import manifests, rename_some


def target(*globs: str) -> PlanOptions:
    return PlanOptions(allow=LENIENT.allow, targets=globs)


EXCLUDED = PlanOptions(allow=LENIENT.allow, excludes=("TLSEdge/new",))
RESTRICTED = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p")]}})


def test_deletions_come_before_all_other_changes() -> None:
    """Also deletions by `ensure: absent`, which are decided among the other resources."""
    policies = [live("IPPolicy", f"ipp_{name}", owner=record(f"IPPolicy/{name}", {})) for name in ("deleted", "m", "x")]
    plan = make_plan(
        declare("IPPolicy/a"),
        declare("IPPolicy/m", ensure=Ensure.ABSENT),
        declare("IPPolicy/z"),
        seen=snapshot(*policies),
    )
    assert [(str(change.address), str(change.action)) for change in plan.changes] == [
        ("IPPolicy/m", "delete"),
        ("IPPolicy/deleted", "delete"),
        ("IPPolicy/x", "delete"),
        ("IPPolicy/a", "create"),
        ("IPPolicy/z", "create"),
    ]


# --- references -------------------------------------------------------------------------------------------------------


def test_a_reference_to_an_existing_object_is_its_id() -> None:
    plan = make_plan(
        declare("IPPolicy/p"), RESTRICTED, seen=snapshot(live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {})))
    )
    assert (plan.calls[0].body or {})["ip_restriction"] == {"ip_policy_ids": ["ipp_1"]}


def test_a_reference_to_an_object_that_will_be_created_remains_a_reference() -> None:
    plan = make_plan(declare("IPPolicy/p"), RESTRICTED)
    assert (plan.calls[1].body or {})["ip_restriction"] == {"ip_policy_ids": [ref("IPPolicy/p")]}


def test_a_reference_to_a_resource_that_will_be_deleted_is_a_problem() -> None:
    plan = make_plan(
        declare("IPPolicy/p", ensure=Ensure.ABSENT),
        RESTRICTED,
        seen=snapshot(live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))),
    )
    assert errors(plan) == ["it refers to IPPolicy/p, which will be deleted"]


def test_a_reference_to_an_absent_resource_without_an_object_is_a_problem() -> None:
    plan = make_plan(declare("IPPolicy/p", ensure=Ensure.ABSENT), RESTRICTED)
    assert errors(plan) == ["it refers to IPPolicy/p, which does not exist and will not be created by this plan"]


def test_a_reference_to_a_forgotten_resource_is_its_id() -> None:
    plan = make_plan(
        declare("IPPolicy/p", ensure=Ensure.FORGOTTEN),
        RESTRICTED,
        seen=snapshot(live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))),
    )
    assert errors(plan) == []


def test_a_reference_to_a_forgotten_resource_that_another_stack_manages_is_its_id() -> None:
    plan = make_plan(
        declare("ReservedDomain/d", {"domain": "a.x"}, ensure=Ensure.FORGOTTEN),
        declare("TLSEdge/e", {"description": ref("ReservedDomain/d")}),
        seen=snapshot(live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=record("ReservedDomain/x", stack="b"))),
    )
    assert (requests(plan), errors(plan)) == (["POST /edges/tls"], [])
    assert (plan.calls[0].body or {})["description"] == "rd_1"


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
def test_a_host_of_a_wildcard_domain_does_not_need_its_own_domain(ensure: Ensure) -> None:
    plan = make_plan(
        declare("ReservedDomain/all", {"domain": "*.a.x"}),
        declare("ReservedDomain/app", {"domain": "app.a.x"}, ensure=ensure),
        declare("TLSEdge/e", {"hostports": ["app.a.x:443"]}),
    )
    assert errors(plan) == []
    assert requests(plan) == ["POST /reserved_domains", "POST /edges/tls"]
    assert plan.calls[1].needs == ("create ReservedDomain/all",)


def test_an_output_that_the_platform_does_not_return_is_a_problem() -> None:
    plan = make_plan(
        declare("ReservedAddress/a"),
        declare("TCPEdge/e", {"hostports": [ref("ReservedAddress/a", "addr")]}),
        seen=snapshot(live("ReservedAddress", "ra_1", {"region": "us"}, owner=record("ReservedAddress/a", {}))),
    )
    assert errors(plan) == ["it refers to ReservedAddress/a.addr, which the platform does not return"]


def test_an_output_inside_an_object_is_found_by_its_path() -> None:
    plan = make_plan(
        declare("ReservedDomain/d", {"domain": "a.x"}, ignore=("certificate_id",)),
        declare("TLSEdge/e", {"description": ref("ReservedDomain/d", "certificate.id")}),
        seen=snapshot(
            live(
                "ReservedDomain",
                "rd_1",
                {"domain": "a.x", "certificate": {"id": "cert_1"}},
                owner=record("ReservedDomain/d", {"domain": "a.x"}),
            )
        ),
    )
    assert [(call.body or {}).get("description") for call in plan.calls] == ["cert_1"]


def test_a_resource_that_refers_to_a_problem_is_skipped_and_others_are_planned() -> None:
    seen = snapshot(live("TLSEdge", "edgtls_9"))
    plan = make_plan(declare("IPPolicy/p", id="edgtls_9"), RESTRICTED, declare("IPPolicy/other"), seen=seen)
    assert actions(plan) == {"IPPolicy/other": "create"}
    assert [problem.code for problem in plan.errors] == ["unknown-id", "refers-to-skipped"]
    assert plan.blocking_errors == ()


# --- targets ----------------------------------------------------------------------------------------------------------


def test_only_selected_resources_are_planned() -> None:
    assert actions(make_plan(declare("IPPolicy/a"), declare("IPPolicy/b"), options=target("IPPolicy/a"))) == {
        "IPPolicy/a": "create"
    }


def test_excluded_resources_are_not_planned() -> None:
    plan = make_plan(declare("IPPolicy/a"), declare("IPPolicy/b"), options=PlanOptions(excludes=("*/a",)))
    assert actions(plan) == {"IPPolicy/b": "create"}


def test_unselected_objects_are_not_deleted() -> None:
    policies = [live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in range(2)]
    plan = make_plan(declare("TLSEdge/e"), seen=snapshot(*policies), options=target("IPPolicy/1"))
    assert requests(plan) == ["DELETE /ip_policies/ipp_1"]


def test_a_reference_to_an_existing_unselected_object_is_its_id() -> None:
    plan = make_plan(
        declare("IPPolicy/p", {"description": "changed"}),
        RESTRICTED,
        seen=snapshot(live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))),
        options=target("TLSEdge/*"),
    )
    assert (requests(plan), errors(plan)) == (["POST /edges/tls"], [])


def test_a_reference_to_an_unselected_resource_without_an_object_is_a_problem() -> None:
    plan = make_plan(declare("IPPolicy/p"), RESTRICTED, options=target("TLSEdge/*"))
    assert errors(plan) == ["it refers to IPPolicy/p, which does not exist and will not be created by this plan"]


def test_a_host_of_an_unselected_domain_without_an_object_is_a_problem() -> None:
    plan = make_plan(
        declare("ReservedDomain/d", {"domain": "a.x"}),
        declare("TLSEdge/e", {"hostports": ["a.x:443"]}),
        options=target("TLSEdge/*"),
    )
    assert errors(plan) == ["it refers to ReservedDomain/d, which does not exist and will not be created by this plan"]


def test_a_host_of_an_unmanaged_domain_is_no_problem() -> None:
    plan = make_plan(
        declare("ReservedDomain/d", {"domain": "a.x"}),
        declare("TLSEdge/e", {"hostports": ["a.x:443"]}),
        seen=snapshot(live("ReservedDomain", "rd_1", {"domain": "a.x"})),
        options=target("TLSEdge/*"),
    )
    assert errors(plan) == []


def test_an_object_moved_to_an_unselected_address_is_not_deleted() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/old", {}))
    plan = make_plan(
        declare("TLSEdge/new", moved=["TLSEdge/old"]),
        seen=snapshot(edge),
        options=PlanOptions(excludes=("TLSEdge/new",)),
    )
    assert plan.changes == ()


@pytest.mark.parametrize("options", [EXCLUDED, target("TLSEdge/old-*")], ids=["excluded", "not targeted"])
@pytest.mark.parametrize("id", [None, "edgtls_3"])
def test_an_unselected_ambiguous_resource_is_unchanged_under_all_its_addresses(
    options: PlanOptions, id: str | None
) -> None:
    edges = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/old-{n}", {}, intent=f"i{n}")) for n in (1, 2, 3)]
    new = declare("TLSEdge/new", id=id, moved=["TLSEdge/old-1", "TLSEdge/old-2"])
    plan = make_plan(new, seen=snapshot(*edges), options=options)
    assert [change.id for change in plan.changes] == ([] if id else ["edgtls_3"])
    assert plan.problems == ()


def test_bindings_of_unselected_resources_are_unchanged() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": True})
    plan = make_plan(
        declare("BotUser/b", {"name": "b"}, adopt=True),
        seen=snapshot(bot, bindings={"BotUser/x": Binding("bot_9")}),
        options=target("TLSEdge/*"),
    )
    assert plan.bindings == {}


# --- contents of a plan ----------------------------------------------------------------------------------------------


def test_a_plan_observes_each_object_that_it_changes_and_no_other() -> None:
    policies = [
        live("IPPolicy", f"ipp_{n}", {"description": "x"}, owner=record(f"IPPolicy/{n}", {"description": "x"}))
        for n in range(3)
    ]
    plan = make_plan(
        declare("IPPolicy/0", {"description": "x"}),
        declare("IPPolicy/1", {"description": "y"}),
        seen=snapshot(*policies),
    )
    assert {str(address): (seen.id, seen.fields["description"]) for address, seen in plan.observed.items()} == {
        "IPPolicy/1": ("ipp_1", "x"),
        "IPPolicy/2": ("ipp_2", "x"),
    }


def test_a_plan_observes_the_newer_object_of_an_interrupted_replacement() -> None:
    older = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    newer = live("IPPolicy", "ipp_2", owner=record("IPPolicy/p", {}, intent="i2", replaces="ipp_1"))
    plan = make_plan(declare("IPPolicy/p", {"description": "x"}), seen=snapshot(older, newer))
    assert plan.observed[at("IPPolicy/p")].id == "ipp_2"


def test_unmanaged_objects_are_listed() -> None:
    plan = make_plan(
        seen=snapshot(
            live("TLSEdge", "e"),
            live("TLSEdge", "other", owner=record("TLSEdge/x", {}, stack="other")),
            live("BotUser", "bot_2", {"name": "b"}),
        )
    )
    assert plan.unmanaged == (("BotUser", "bot_2"), ("TLSEdge", "e"))


LISTS = len({kind.path for kind in KINDS if kind.parent is None})  # requests of the refresh before the first call


@pytest.mark.parametrize(("calls", "seconds"), [(0, 0), (3, 0), (4, 60), (6 + LISTS, 60), (7 + LISTS, 120)])
def test_a_forecast_waits_a_window_for_each_full_budget(calls: int, seconds: float) -> None:
    plan = make_plan(
        *(declare(f"IPPolicy/{n}") for n in range(calls)), options=PlanOptions(requests_per_minute=LISTS + 3)
    )
    assert (plan.forecast.calls, plan.forecast.estimated_seconds) == (calls, seconds)


def test_a_forecast_without_a_budget_does_not_wait() -> None:
    assert make_plan(*(declare(f"IPPolicy/{n}") for n in range(9))).forecast.estimated_seconds == 0


def test_a_plan_has_the_same_bytes_for_any_order_of_manifest_and_lists() -> None:
    declared = [
        declare("IPPolicy/p"),
        RESTRICTED,
        declare("TLSEdge/f", {"description": "x"}),
        declare("ReservedDomain/d", {"domain": "a.x"}),
        declare("BotUser/b", {"name": "b"}),
    ]
    live_objects = [
        *(live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in range(4)),
        *(live("TLSEdge", f"e{n}", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}}) for n in range(4)),
        live("ReservedDomain", "rd_1", {"domain": "a.x"}),
        live("BotUser", "bot_1", {"name": "b"}),
        live("BotUser", "bot_2", {"name": "c"}),
    ]
    bindings = {"BotUser/b": Binding("bot_1"), "BotUser/c": Binding("bot_2"), "BotUser/x": Binding("bot_9")}
    spellings = set()
    for seed in range(8):
        chance = random.Random(seed)
        shuffled = dict(chance.sample(list(bindings.items()), len(bindings)))
        plan = make_plan(
            *chance.sample(declared, len(declared)),
            seen=snapshot(*chance.sample(live_objects, len(live_objects)), bindings=shuffled),
            options=LENIENT,
        )
        spellings.add(write_plan(plan))
    assert len(spellings) == 1


def test_bad_references_are_problems_with_a_subject_and_a_position() -> None:
    (problem,) = make_plan(declare("IPPolicy/p", ensure=Ensure.ABSENT), RESTRICTED).errors
    assert isinstance(problem, Problem)
    assert (problem.subject, str(problem.position)) == ("TLSEdge/e", "m.yaml:1:1")


def test_a_plan_after_a_destroy_is_empty() -> None:
    world = build_account(declare("IPPolicy/p"), RESTRICTED, declare("BotUser/b", {"name": "b"}))
    destroy = PlanOptions(destroy=True)
    world.carry_out(plan_on(world, options=destroy))
    assert (world.objects, world.bindings, plan_on(world, options=destroy).changes) == ({}, {}, ())


def test_an_object_replaced_by_an_excluded_resource_is_unchanged() -> None:
    """A run ended between the create and the delete of a replacement, and then the resource was renamed."""
    old = live("ReservedDomain", "rd_1", {"domain": "a.x"}, owner=record("ReservedDomain/old", {}))
    new = live(
        "ReservedDomain",
        "rd_2",
        {"domain": "b.x"},
        owner=record("ReservedDomain/old", {}, intent="i2", replaces="rd_1"),
    )
    declared = declare("ReservedDomain/new", {"domain": "b.x"})
    plan = make_plan(declared, seen=snapshot(old, new), options=PlanOptions(excludes=("ReservedDomain/new",)))
    assert (plan.changes, plan.calls) == ((), ())
    assert [change.id for change in make_plan(declared, seen=snapshot(old, new)).changes] == ["rd_1", "rd_2"]


def test_a_deletion_identifies_its_object_and_other_changes_do_not() -> None:
    domains = [
        live(
            "ReservedDomain", f"rd_{n}", {"domain": f"{n}.x"}, owner=record(f"ReservedDomain/{n}", {"domain": f"{n}.x"})
        )
        for n in range(2)
    ]
    plan = make_plan(declare("ReservedDomain/0", {"domain": "0.x", "description": "x"}), seen=snapshot(*domains))
    assert {str(change.address): dict(change.identity) for change in plan.changes} == {
        "ReservedDomain/0": {},
        "ReservedDomain/1": {"domain": "1.x"},
    }


def test_a_referrer_of_a_duplicate_credential_is_skipped_and_others_are_planned() -> None:
    """A user must choose one of the two."""
    credentials = [
        live("TunnelCredential", f"cr_{n}", owner=record("TunnelCredential/c", {}, intent=f"i{n}")) for n in (1, 2)
    ]
    plan = make_plan(
        declare("TunnelCredential/c"),
        declare("TLSEdge/referrer", {"description": ref("TunnelCredential/c")}),
        declare("TLSEdge/other", {"description": ref("IPPolicy/p")}),
        declare("IPPolicy/p"),
        seen=snapshot(*credentials),
    )
    assert actions(plan) == {"IPPolicy/p": "create", "TLSEdge/other": "create"}
    assert [(problem.subject, problem.code) for problem in plan.errors] == [
        ("TunnelCredential/c", "credential-created-twice"),
        ("TLSEdge/referrer", "refers-to-skipped"),
    ]
    assert plan.blocking_errors == ()


# --- interrupted runs -------------------------------------------------------------------------------------------------

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=examples(50), suppress_health_check=SLOW)
@given(manifests(), manifests(), manifests(), st.data())
def test_a_third_plan_converges_after_two_partial_applies(
    before: Manifest, between: Manifest, after: Manifest, data: Any
) -> None:
    world = RandomAccount(KINDS)
    for manifest in (before, between):
        plan = planner.plan(manifest, world.snapshot(), KINDS, LENIENT)
        assume(not plan.problems)
        count = data.draw(st.integers(0, len(plan.calls)))
        world.carry_out(replace(plan, calls=plan.calls[:count], bindings={}))
    plan = planner.plan(after, world.snapshot(), KINDS, LENIENT)
    assume(not plan.problems)
    world.carry_out(plan)
    again = planner.plan(after, world.snapshot(), KINDS, LENIENT)
    assert (again.changes, again.calls) == ((), ())
    assert len(world.objects) == len(after.declarations)


@settings(max_examples=examples(50), suppress_health_check=SLOW)
@given(manifests(), manifests(), st.data())
def test_a_plan_converges_after_a_partial_apply_of_a_rename_with_a_change(
    before: Manifest, after: Manifest, data: Any
) -> None:
    world = RandomAccount(KINDS)
    world.carry_out(planner.plan(before, world.snapshot(), KINDS, LENIENT))
    both = sorted(before.declarations.keys() & after.declarations.keys())
    assume(both)
    chosen = data.draw(st.lists(st.sampled_from(both), min_size=1, unique=True))
    after = rename_some(
        after, "new", {address: (address,) for address in {address.kind: address for address in chosen}.values()}
    )
    plan = planner.plan(after, world.snapshot(), KINDS, LENIENT)
    assume(not plan.problems)
    count = data.draw(st.integers(0, len(plan.calls)))
    world.carry_out(replace(plan, calls=plan.calls[:count], bindings={}))
    rest = planner.plan(after, world.snapshot(), KINDS, LENIENT)
    assert rest.errors == ()
    world.carry_out(rest)
    again = planner.plan(after, world.snapshot(), KINDS, LENIENT)
    assert (again.changes, again.calls) == ((), ())
    assert len(world.objects) == len(after.declarations)

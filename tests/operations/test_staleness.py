"""What of a plan file still holds, where an address has more names or objects than one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from reconciler.model.change import Action, Change, Reason
from reconciler.model.plan import Approval, Forecast, Plan
from reconciler.model.snapshot import Binding, Snapshot
from reconciler.operations.applying import remaining_plan, staleness
from tests.planning.builders import LENIENT, at, declare, live, make_plan, record, ref, snapshot


@pytest.mark.parametrize("description", ["", "changed as well"])
def test_what_was_renamed_as_it_was_replaced_is_still_ours_to_delete(description: str) -> None:
    was = {"domain": "a.example.com"}
    now = {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/b", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    seen = snapshot(old, new)
    declared = declare("ReservedDomain/a", {**now, "description": description}, moved=["ReservedDomain/b"])
    plan = make_plan(declared, seen=seen, options=LENIENT)
    assert "rd_old" in [change.id for change in plan.changes]
    assert staleness.find_changed_objects(plan, seen) == {}


def test_what_is_not_renamed_after_all_keeps_the_name_it_is_remembered_by() -> None:
    bot = live("BotUser", "bot_1", {"name": "nightly"})
    seen = snapshot(bot, bindings={"BotUser/old": Binding("bot_1", {})})
    plan = make_plan(declare("BotUser/new", {"name": "nightly"}, moved=["BotUser/old"]), seen=seen)
    assert plan.bindings.keys() == {at("BotUser/new"), at("BotUser/old")}
    rest, _ = remaining_plan.without_changed(plan, {at("BotUser/new")})
    assert (rest.changes, rest.bindings) == ((), {})


def test_the_rest_of_a_plan_is_forecast_and_consented_to_as_the_rest() -> None:
    names = [f"a{number}" for number in range(12)]
    was, now = {"description": "was"}, {"description": "now"}
    there = [live("IPPolicy", f"ipp_{n}", was, owner=record(f"IPPolicy/{n}", was, intent=f"i{n}")) for n in names]
    plan = make_plan(*(declare(f"IPPolicy/{name}", now) for name in names), seen=snapshot(*there))
    plan = replace(plan, forecast=Forecast(12, 60.0))
    assert [approval.flag for approval in plan.approvals] == ["--allow update:*=12"]
    rest, _ = remaining_plan.without_changed(plan, {at("IPPolicy/a0")})
    assert rest.forecast == Forecast(11, 55.0)
    assert [approval.flag for approval in rest.approvals] == ["--allow update:*=11"]
    nothing, _ = remaining_plan.without_changed(plan, {at(f"IPPolicy/{name}") for name in names})
    assert (nothing.approvals, nothing.forecast) == ((), Forecast(0, 0.0))


@pytest.mark.parametrize(
    ("what", "kind", "count", "refused", "left"),
    [
        ("update", "*", 2, "BotUser/update", [1]),
        ("delete", "*", 2, "BotUser/delete", [1]),
        ("delete", "BotUser", 1, "BotUser/delete", []),
        ("delete", "BotUser", 1, "IPPolicy/replace", [1]),
        ("delete-protected", "BotUser", 1, "BotUser/delete", []),
        ("delete", "IPPolicyRule", 2, "BotUser/delete", [2]),
        ("account", "*", 1, "BotUser/delete", [1]),
        ("empty", "*", 9, "BotUser/delete", [9]),
    ],
)
def test_a_consent_is_never_about_more_than_is_left(
    what: str, kind: str, count: int, refused: str, left: list[int]
) -> None:
    actions = [Action.UPDATE, Action.MOVE, Action.DELETE, Action.REPLACE, Action.CREATE]
    homes = ["BotUser", "BotUser", "BotUser", "IPPolicy", "IPPolicy"]
    changes = tuple(
        Change(at(f"{home}/{action}"), action, Reason.FIELDS) for home, action in zip(homes, actions, strict=True)
    )
    parts = 2 if kind == "IPPolicyRule" else 0  # which go with something
    plan = Plan("prod", changes=changes, approvals=(Approval(what, kind, count, "why", granted=True, parts=parts),))
    rest, _ = remaining_plan.without_changed(plan, {at(refused)})
    assert [approval.count for approval in rest.approvals] == left


@pytest.mark.parametrize("work", ["compare", "leave out"])
def test_the_work_of_the_staleness_check_grows_with_the_plan_and_not_with_its_square(work: str) -> None:
    """Counts the lines of Python that run for a plan and for one of twice its size."""

    def steps(size: int) -> int:
        plan, seen = _plan_of(size)
        first = plan.changes[0].address
        return _steps(
            lambda: (
                staleness.find_changed_objects(plan, seen)
                if work == "compare"
                else remaining_plan.without_changed(plan, {first})
            )
        )

    steps(1)  # fills the caches
    assert steps(200) < 2.3 * steps(100)


def _plan_of(size: int) -> tuple[Plan, Snapshot]:
    """Creates with a unique key, updates, and a chain of references, beside as many objects that nobody declares."""
    was, now = {"description": "was"}, {"description": "now"}
    updates = [
        live("IPPolicy", f"ipp_{n}", was, owner=record(f"IPPolicy/p{n}", was, intent=f"i{n}")) for n in range(size)
    ]
    others = [live("ReservedDomain", f"rd_{n}", {"domain": f"other{n}.example.com"}) for n in range(size)]
    seen = snapshot(*updates, *others)
    declared = [
        *(declare(f"ReservedDomain/d{n}", {"domain": f"d{n}.example.com"}) for n in range(size)),
        *(declare(f"IPPolicy/p{n}", now) for n in range(size)),
    ]
    plan = make_plan(*declared, seen=seen, options=LENIENT)
    chained = [replace(call, needs=(before.id,)) for before, call in zip(plan.calls, plan.calls[1:], strict=False)]
    return replace(plan, calls=(plan.calls[0], *chained)), seen


def _steps(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_a_new_object_whose_kind_cannot_be_listed_is_not_created_blindly() -> None:
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot())
    (lines,) = staleness.find_changed_objects(plan, snapshot(cut=["TLSEdge"])).values()
    assert lines == ["TLSEdge/a: cannot be read: cut"]


def test_a_replaced_object_that_another_stack_owns_by_now_is_stale_though_its_address_is_ours() -> None:
    was, now = {"domain": "a.example.com"}, {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/a", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    declared = declare("ReservedDomain/a", {**now, "description": "changed as well"})
    plan = make_plan(declared, seen=snapshot(old, new), options=LENIENT)
    assert ("rd_old" in [change.id for change in plan.changes], plan.observed[at("ReservedDomain/a")].id) == (
        True,
        "rd_new",
    )
    theirs = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/a", was, stack="theirs"))
    (lines,) = staleness.find_changed_objects(plan, snapshot(theirs, new)).values()
    assert lines == ["ReservedDomain/a: rd_old is now managed by theirs ReservedDomain/a"]


def test_an_object_that_a_finished_call_updated_is_stale_if_it_is_deleted_before_the_next() -> None:
    was = {"description": "was", "traffic_policy": {"value": "{}"}}
    edge = live("TLSEdge", "e", was, owner=record("TLSEdge/e", was))
    plan = make_plan(declare("TLSEdge/e", {"description": "now"}), seen=snapshot(edge))
    first, second = plan.calls
    assert staleness.find_changed_objects(plan, snapshot(edge), {first.id}) == {}
    (lines,) = staleness.find_changed_objects(plan, snapshot(), {first.id}).values()
    assert lines == ["TLSEdge/e: e was deleted"]
    assert second.target == "e"


def test_an_equal_object_of_a_kind_that_may_exist_twice_is_no_conflict_with_a_create() -> None:
    pem = {"ca_pem": "-----BEGIN CERTIFICATE-----"}
    plan = make_plan(declare("CertificateAuthority/a", pem), seen=snapshot())
    assert [call.method for call in plan.calls] == ["POST"]
    assert staleness.find_changed_objects(plan, snapshot(live("CertificateAuthority", "ca_1", pem))) == {}


def test_what_no_finished_call_created_is_not_missed() -> None:
    rule = {"ip_policy_id": ref("IPPolicy/office"), "cidr": "10.0.0.0/8", "action": "allow"}
    plan = make_plan(declare("IPPolicy/office"), declare("IPPolicyRule/r", rule), declare("TLSEdge/e"), seen=snapshot())
    edge = live("TLSEdge", "e", owner=record("TLSEdge/e", {}, intent="i9"))
    rest, lost = remaining_plan.without_finished_calls(plan, snapshot(edge), {"create TLSEdge/e"})
    assert (lost, [call.id for call in rest.calls]) == ({}, ["create IPPolicy/office", "create IPPolicyRule/r"])
    _, lost = remaining_plan.without_finished_calls(plan, snapshot(), {"create IPPolicy/office"})
    assert lost == {
        at("IPPolicyRule/r"): ["IPPolicyRule/r: IPPolicy/office, which this plan created, does not exist any more"]
    }

"""The order of the rules for a resource with a live object: of two that apply, which one decides."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Reason
from reconciler.model.manifest import Rotation
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import INTENT, LENIENT, at, change_of, declare, errors, live, make_plan, record, snapshot

DAY = 86_400
RENEWAL = 1_767_225_600.0 + 90 * DAY  # 90 days after 2026-01-01T00:00:00Z
AGENT = "TunnelCredential/agent"


def outcomes(plan: Plan) -> list[tuple[Action, Reason]]:
    return [(change.action, change.reason) for change in plan.changes]


def replace_options(*addresses: str) -> PlanOptions:
    return replace(LENIENT, to_replace=frozenset(map(at, addresses)))


# --- refusals come first ----------------------------------------------------------------------------------------------


def test_a_field_that_cannot_be_sent_is_refused_before_its_object_is_replaced() -> None:
    role = {"role": {"role_arn": "arn:1"}}
    was = {"target": {"logs": {"auth": role, "log_group_arn": "arn:2"}}}
    there = live("EventDestination", "ed_1", was, owner=record("EventDestination/a", was))
    other = {"target": {"metrics": {"service": "edge"}}}  # another member of `target` cannot be updated in place
    plan = make_plan(declare("EventDestination/a", other, ignore=("target.metrics.api_key",)), seen=snapshot(there))
    assert errors(plan) == ["it cannot be changed without target.metrics.api_key, which no manifest declares"]


def test_what_interrupts_traffic_that_no_manifest_restores_is_refused_before_an_update() -> None:
    oidc = {"issuer": "https://i.x", "client_id": "c", "client_secret": "s"}
    route = {"edge_id": "e_1", "match": "/", "match_type": "path_prefix"}
    shown = {**route, "oidc": oidc, "backend": {"backend": {"id": "bkdhr_1"}}}
    there = live("HTTPSEdgeRoute", "rt_1", shown, parent="e_1", owner=record("HTTPSEdgeRoute/r", route))
    wanted = {**route, "oauth": {"provider": {"github": {}}}}
    plan = make_plan(
        declare("HTTPSEdgeRoute/r", wanted, ignore=("backend",)),
        seen=snapshot(there),
        options=replace_options("HTTPSEdgeRoute/r"),
    )
    assert [text.partition(";")[0] for text in errors(plan)] == [
        "backend must be removed while the authentication module is exchanged, and no manifest declares its value"
    ]


def test_a_requested_replacement_of_what_nobody_owns_is_refused_whatever_differs() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"})
    declared = declare("CertificateAuthority/a", {"ca_pem": "NEW"}, id="ca_1")
    plan = make_plan(declared, seen=snapshot(there), options=replace_options("CertificateAuthority/a"))
    assert errors(plan) == ["ca_1 is not managed by any stack and cannot be replaced"]


# --- modules of an object of somebody else's --------------------------------------------------------------------------

ROUTE = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "match_type": "path_prefix"}, parent="e_1")
MODULES = {"edge_id": "e_1", "compression": {"enabled": True}}


def test_of_a_route_that_is_named_by_id_the_modules_are_updated_and_it_is_not_adopted() -> None:
    plan = make_plan(declare("HTTPSEdgeRoute/r", MODULES, id="rt_1"), seen=snapshot(ROUTE))
    assert outcomes(plan) == [(Action.UPDATE, Reason.FIELDS)]


def test_a_route_of_which_only_modules_are_managed_is_not_replaced_on_request() -> None:
    declared = declare("HTTPSEdgeRoute/r", MODULES, id="rt_1")
    plan = make_plan(declared, seen=snapshot(ROUTE), options=replace_options("HTTPSEdgeRoute/r"))
    assert errors(plan) == ["only the modules of rt_1 are managed"]


# --- replacements -----------------------------------------------------------------------------------------------------


def test_an_immutable_field_is_the_reason_of_a_replacement_that_is_requested_too() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    declared = declare("CertificateAuthority/a", {"ca_pem": "NEW"})
    plan = make_plan(declared, seen=snapshot(there), options=replace_options("CertificateAuthority/a"))
    assert outcomes(plan) == [(Action.REPLACE, Reason.IMMUTABLE)]


def credential(id: str = "cr_1", intent: str = INTENT, description: str = "", *, pending: bool = False) -> Live:
    owner = record(AGENT, {"description": description}, intent=intent, pending=pending)
    body = {"description": description, "created_at": "2026-01-01T00:00:00Z"}
    return live("TunnelCredential", id, body, owner=owner)


def plan_credential(seen: Snapshot, *, is_due: bool = False, **more: Any) -> Plan:
    declared = replace(declare(AGENT, more.pop("spec", {})), rotate=Rotation(after=90 * DAY, overlap=DAY))
    return make_plan(declared, seen=seen, options=replace(LENIENT, now=RENEWAL if is_due else RENEWAL - 1, **more))


PENDING = snapshot(credential(pending=True))
DELIVERED = snapshot(credential(pending=True), receipts=[INTENT])
OVERWRITTEN = {INTENT: at(AGENT)}


def test_a_pending_credential_is_left_to_the_run_that_may_be_delivering_it() -> None:
    """Of two that were created at once, this store knows one to be undelivered; the other is another run's."""
    other = credential("cr_2", "intent-1", pending=True)
    seen = snapshot(credential(pending=True), other, undelivered=["intent-1"])
    plan = plan_credential(seen, is_due=True, spec={"description": "changed"})
    assert [(change.id, change.reason) for change in plan.changes] == [("cr_2", Reason.DUPLICATE)]
    plan = plan_credential(seen, to_replace=frozenset({at(AGENT)}))
    assert ("cr_1", Reason.REQUESTED) in [(change.id, change.reason) for change in plan.changes]


def test_a_request_replaces_a_credential_whatever_its_delivery_came_to() -> None:
    for seen in (PENDING, DELIVERED):
        plan = plan_credential(seen, is_due=True, to_replace=frozenset({at(AGENT)}))
        assert outcomes(plan) == [(Action.REPLACE, Reason.REQUESTED)]


def test_a_credential_that_never_arrived_is_replaced_for_that_and_not_renewed_with_an_overlap() -> None:
    plan = plan_credential(PENDING, is_due=True)
    assert outcomes(plan) == [(Action.REPLACE, Reason.UNDELIVERED)]
    assert [call.id for call in plan.calls][-1] == f"delete {AGENT} cr_1"


@pytest.mark.parametrize("overwritten", [{}, OVERWRITTEN])
def test_a_credential_that_arrived_is_marked_so_before_its_age_or_its_target_counts(
    overwritten: dict[str, Any],
) -> None:
    plan = plan_credential(replace(DELIVERED, overwritten=overwritten), is_due=True)
    assert outcomes(plan) == [(Action.UPDATE, Reason.RECORD)]


def test_a_credential_that_was_overwritten_is_replaced_at_once_although_it_is_due_too() -> None:
    plan = plan_credential(replace(snapshot(credential()), overwritten=OVERWRITTEN), is_due=True)
    assert outcomes(plan) == [(Action.REPLACE, Reason.OVERWRITTEN)]


def test_a_credential_that_is_due_is_renewed_and_not_updated_first() -> None:
    plan = plan_credential(snapshot(credential()), is_due=True, spec={"description": "changed"})
    assert outcomes(plan) == [(Action.REPLACE, Reason.ROTATION)]


def test_a_credential_that_is_due_and_renamed_is_renewed_under_its_new_name() -> None:
    declared = replace(declare("TunnelCredential/new", moved=[AGENT]), rotate=Rotation(after=90 * DAY, overlap=DAY))
    plan = make_plan(declared, seen=snapshot(credential()), options=replace(LENIENT, now=RENEWAL))
    assert outcomes(plan) == [(Action.REPLACE, Reason.ROTATION)]


# --- in place ---------------------------------------------------------------------------------------------------------


def test_a_move_carries_the_fields_that_differ() -> None:
    there = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/old", {"description": "x"}))
    plan = make_plan(declare("TLSEdge/new", {"description": "y"}, moved=["TLSEdge/old"]), seen=snapshot(there))
    assert outcomes(plan) == [(Action.MOVE, Reason.RENAMED)]
    assert [field.path for field in change_of(plan, "TLSEdge/new").fields] == ["description"]


def test_an_adoption_carries_the_fields_that_differ() -> None:
    there = live("TLSEdge", "e", {"description": "x"})
    plan = make_plan(declare("TLSEdge/a", {"description": "y"}, id="e"), seen=snapshot(there))
    assert outcomes(plan) == [(Action.ADOPT, Reason.UNOWNED)]
    assert [field.path for field in change_of(plan, "TLSEdge/a").fields] == ["description"]


def test_an_update_of_a_field_writes_the_owner_record_that_is_out_of_date_too() -> None:
    there = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/a", {"description": "x"}))
    plan = make_plan(declare("TLSEdge/a", {"description": "y"}, protect=True), seen=snapshot(there))
    assert outcomes(plan) == [(Action.UPDATE, Reason.FIELDS)]
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.protect


def test_of_a_route_whose_modules_are_as_declared_nothing_is_adopted_or_bound() -> None:
    there = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "compression": {"enabled": True}}, parent="e_1")
    for protect in (False, True):
        declared = declare("HTTPSEdgeRoute/r", MODULES, id="rt_1", protect=protect, adopt=True)
        plan = make_plan(declared, seen=snapshot(there), options=replace(LENIENT, adopt=True))
        assert (plan.changes, plan.calls, plan.problems, plan.bindings) == ((), (), (), {})


def test_a_field_that_is_ignored_is_no_part_of_a_binding() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": False})
    declared = declare("BotUser/b", {"name": "b", "active": True}, ignore=("active",))
    plan = make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")}))
    (binding,) = plan.bindings.values()
    assert binding is not None
    assert list(binding.applied) == ["name"]

"""The order of the rules for a resource with a live object: which of two matching rules decides."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Reason
from reconciler.model.manifest import Declaration, Ensure, Rotation
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import (
    INTENT,
    LENIENT,
    at,
    change_of,
    declare,
    errors,
    live,
    make_plan,
    record,
    snapshot,
)

DAY = 86_400
CREATED = 1_767_225_600.0  # 2026-01-01T00:00:00Z
RENEWAL = CREATED + 90 * DAY
AGENT = "TunnelCredential/agent"


def outcomes(plan: Plan) -> list[tuple[Action, Reason]]:
    return [(change.action, change.reason) for change in plan.changes]


def replace_options(*addresses: str) -> PlanOptions:
    return replace(LENIENT, to_replace=frozenset(map(at, addresses)))


# --- refusals come first ----------------------------------------------------------------------------------------------


def test_a_field_that_cannot_be_sent_is_refused_before_a_replacement() -> None:
    role = {"role": {"role_arn": "arn:1"}}
    was = {"target": {"logs": {"auth": role, "log_group_arn": "arn:2"}}}
    destination = live("EventDestination", "ed_1", was, owner=record("EventDestination/a", was))
    other = {"target": {"metrics": {"service": "edge"}}}  # another member of `target` cannot be updated in place
    plan = make_plan(
        declare("EventDestination/a", other, ignore=("target.metrics.api_key",)), seen=snapshot(destination)
    )
    assert errors(plan) == ["it cannot be changed without target.metrics.api_key, which no manifest declares"]


def test_an_unrestorable_interruption_of_traffic_is_refused_before_an_update() -> None:
    oidc = {"issuer": "https://i.x", "client_id": "c", "client_secret": "s"}
    route = {"edge_id": "e_1", "match": "/", "match_type": "path_prefix"}
    body = {**route, "oidc": oidc, "backend": {"backend": {"id": "bkdhr_1"}}}
    live_route = live("HTTPSEdgeRoute", "rt_1", body, parent="e_1", owner=record("HTTPSEdgeRoute/r", route))
    wanted = {**route, "oauth": {"provider": {"github": {}}}}
    plan = make_plan(
        declare("HTTPSEdgeRoute/r", wanted, ignore=("backend",)),
        seen=snapshot(live_route),
        options=replace_options("HTTPSEdgeRoute/r"),
    )
    assert [text.partition(";")[0] for text in errors(plan)] == [
        "backend must be removed while the authentication module is exchanged, and no manifest declares its value"
    ]


def test_a_requested_replacement_of_an_unmanaged_object_is_refused() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"})
    declared = declare("CertificateAuthority/a", {"ca_pem": "NEW"}, id="ca_1")
    plan = make_plan(declared, seen=snapshot(authority), options=replace_options("CertificateAuthority/a"))
    assert errors(plan) == ["ca_1 is not managed by any stack and cannot be replaced"]


# --- modules of an object of another owner ----------------------------------------------------------------------------

ROUTE = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "match_type": "path_prefix"}, parent="e_1")
MODULES = {"edge_id": "e_1", "compression": {"enabled": True}}


def test_a_route_named_by_id_is_updated_in_its_modules_and_not_adopted() -> None:
    plan = make_plan(declare("HTTPSEdgeRoute/r", MODULES, id="rt_1"), seen=snapshot(ROUTE))
    assert outcomes(plan) == [(Action.UPDATE, Reason.FIELDS)]


def test_a_route_with_managed_modules_is_not_replaced_on_request() -> None:
    declared = declare("HTTPSEdgeRoute/r", MODULES, id="rt_1")
    plan = make_plan(declared, seen=snapshot(ROUTE), options=replace_options("HTTPSEdgeRoute/r"))
    assert errors(plan) == ["only the modules of rt_1 are managed"]


# --- replacements -----------------------------------------------------------------------------------------------------


def test_an_immutable_field_is_the_reason_even_of_a_requested_replacement() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    declared = declare("CertificateAuthority/a", {"ca_pem": "NEW"})
    plan = make_plan(declared, seen=snapshot(authority), options=replace_options("CertificateAuthority/a"))
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


def test_a_pending_credential_of_another_run_is_unchanged() -> None:
    """Two runs created credentials; this store recorded one as undelivered, and another run created the other."""
    other = credential("cr_2", "intent-1", pending=True)
    seen = snapshot(credential(pending=True), other, undelivered=["intent-1"])
    plan = plan_credential(seen, is_due=True, spec={"description": "changed"})
    assert [(change.id, change.reason) for change in plan.changes] == [("cr_2", Reason.DUPLICATE)]
    plan = plan_credential(seen, to_replace=frozenset({at(AGENT)}))
    assert ("cr_1", Reason.REQUESTED) in [(change.id, change.reason) for change in plan.changes]


def test_a_request_replaces_a_credential_in_any_state_of_its_delivery() -> None:
    for seen in (PENDING, DELIVERED):
        plan = plan_credential(seen, is_due=True, to_replace=frozenset({at(AGENT)}))
        assert outcomes(plan) == [(Action.REPLACE, Reason.REQUESTED)]


def test_an_undelivered_credential_is_replaced_for_this_reason_without_an_overlap() -> None:
    plan = plan_credential(PENDING, is_due=True)
    assert outcomes(plan) == [(Action.REPLACE, Reason.UNDELIVERED)]
    assert [call.id for call in plan.calls][-1] == f"delete {AGENT} cr_1"


@pytest.mark.parametrize("overwritten", [{}, OVERWRITTEN])
def test_a_delivered_credential_is_updated_before_its_rotation(
    overwritten: dict[str, Any],
) -> None:
    plan = plan_credential(replace(DELIVERED, overwritten=overwritten), is_due=True)
    assert outcomes(plan) == [(Action.UPDATE, Reason.RECORD)]


def test_a_credential_with_an_overwritten_token_is_replaced_at_once_even_if_due() -> None:
    plan = plan_credential(replace(snapshot(credential()), overwritten=OVERWRITTEN), is_due=True)
    assert outcomes(plan) == [(Action.REPLACE, Reason.OVERWRITTEN)]


def test_a_due_credential_is_replaced_and_not_updated_first() -> None:
    plan = plan_credential(snapshot(credential()), is_due=True, spec={"description": "changed"})
    assert outcomes(plan) == [(Action.REPLACE, Reason.ROTATION)]


def test_a_due_and_renamed_credential_is_replaced_under_its_new_name() -> None:
    declared = replace(declare("TunnelCredential/new", moved=[AGENT]), rotate=Rotation(after=90 * DAY, overlap=DAY))
    plan = make_plan(declared, seen=snapshot(credential()), options=replace(LENIENT, now=RENEWAL))
    assert outcomes(plan) == [(Action.REPLACE, Reason.ROTATION)]


# --- in place ---------------------------------------------------------------------------------------------------------


def test_a_move_updates_the_fields_that_differ() -> None:
    edge = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/old", {"description": "x"}))
    plan = make_plan(declare("TLSEdge/new", {"description": "y"}, moved=["TLSEdge/old"]), seen=snapshot(edge))
    assert outcomes(plan) == [(Action.MOVE, Reason.RENAMED)]
    assert [field.path for field in change_of(plan, "TLSEdge/new").fields] == ["description"]


def test_an_adoption_updates_the_fields_that_differ() -> None:
    edge = live("TLSEdge", "e", {"description": "x"})
    plan = make_plan(declare("TLSEdge/a", {"description": "y"}, id="e"), seen=snapshot(edge))
    assert outcomes(plan) == [(Action.ADOPT, Reason.UNOWNED)]
    assert [field.path for field in change_of(plan, "TLSEdge/a").fields] == ["description"]


def test_an_update_of_a_field_updates_an_outdated_owner_record() -> None:
    edge = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/a", {"description": "x"}))
    plan = make_plan(declare("TLSEdge/a", {"description": "y"}, protect=True), seen=snapshot(edge))
    assert outcomes(plan) == [(Action.UPDATE, Reason.FIELDS)]
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.protect


def test_a_route_with_modules_in_sync_is_neither_adopted_nor_bound() -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "compression": {"enabled": True}}, parent="e_1")
    for protect in (False, True):
        declared = declare("HTTPSEdgeRoute/r", MODULES, id="rt_1", protect=protect, adopt=True)
        plan = make_plan(declared, seen=snapshot(route), options=replace(LENIENT, adopt=True))
        assert (plan.changes, plan.calls, plan.problems, plan.bindings) == ((), (), (), {})


def test_an_ignored_field_is_not_in_the_binding() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": False})
    declared = declare("BotUser/b", {"name": "b", "active": True}, ignore=("active",))
    plan = make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")}))
    (binding,) = plan.bindings.values()
    assert binding is not None
    assert list(binding.applied) == ["name"]


# --- absent and forgotten ---------------------------------------------------------------------------------------------

MANAGED, FOREIGN = record("ReservedDomain/d", {}), record("ReservedDomain/x", {}, stack="other")
DOMAIN = {"domain": "a.x"}


@pytest.mark.parametrize(
    ("ensure", "owner", "adopt", "outcome"),
    [
        (Ensure.ABSENT, MANAGED, False, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, MANAGED, True, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, None, False, "not-owned"),
        (Ensure.ABSENT, None, True, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, FOREIGN, False, "owned-by-another-stack"),
        (Ensure.ABSENT, FOREIGN, True, "owned-by-another-stack"),
        (Ensure.FORGOTTEN, MANAGED, False, (Action.FORGET, Reason.FORGOTTEN)),
        (Ensure.FORGOTTEN, None, False, None),
        (Ensure.FORGOTTEN, None, True, None),
        (Ensure.FORGOTTEN, FOREIGN, True, None),
    ],
)
def test_an_absent_or_forgotten_resource_is_deleted_or_forgotten_only_if_managed(
    ensure: Ensure, owner: Owner | None, adopt: bool, outcome: tuple[Action, Reason] | str | None
) -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN, owner=owner)
    # Values that differ, a forbidden replacement and a request for one do not matter.
    declared = declare("ReservedDomain/d", {**DOMAIN, "description": "x"}, ensure=ensure, adopt=adopt, replace=False)
    options = PlanOptions(to_replace=frozenset({declared.address}))
    for chosen in (PlanOptions(), options):
        plan = make_plan(declared, seen=snapshot(domain), options=chosen)
        decided = [(change.action, change.reason) for change in plan.changes]
        assert decided == ([outcome] if isinstance(outcome, tuple) else [])
        assert [problem.code for problem in plan.errors] == ([outcome] if isinstance(outcome, str) else [])
        assert [field for change in plan.changes for field in change.fields] == []
    assert make_plan(declared, seen=snapshot()).is_empty


# --- every state of a credential --------------------------------------------------------------------------------------

FORMER = "TunnelCredential/former"
APPLIED = {"description": "agent", "owner_id": "bot_1"}
PROBLEMS = {"forbidden": "cannot-be-replaced", "no target": "one-time-secret-undelivered"}


class State(NamedTuple):
    """A credential with its manifest and the options of the plan."""

    ownership: str  # "managed", "renamed", or "unmanaged" and named by its id
    secret: str  # "delivered", "undelivered", or "confirmed": delivered, but pending in the owner record
    differs: str  # the field in which the live object differs
    is_requested: bool
    is_due: bool
    overlap: int
    is_overwritten: bool
    is_protected: bool  # by the manifest only
    obstacle: str  # to a replacement

    def declare(self) -> Declaration:
        declared = declare(
            AGENT,
            APPLIED,
            moved=[FORMER] if self.ownership == "renamed" else (),
            id="cr_1" if self.ownership == "unmanaged" else None,
            protect=self.is_protected,
            replace=self.obstacle != "forbidden",
            deliver=self.obstacle != "no target",
        )
        return replace(declared, rotate=Rotation(after=90 * DAY, overlap=self.overlap))

    def observe(self) -> Snapshot:
        address = FORMER if self.ownership == "renamed" else AGENT
        owner = record(address, APPLIED, pending=self.secret != "delivered")
        body = {**APPLIED, "created_at": "2026-01-01T00:00:00Z"} | ({self.differs: "other"} if self.differs else {})
        live_credential = live("TunnelCredential", "cr_1", body, owner=None if self.ownership == "unmanaged" else owner)
        seen = snapshot(live_credential, receipts=[INTENT] if self.secret == "confirmed" else [])
        return replace(seen, overwritten={INTENT: at(AGENT)} if self.is_overwritten else {})

    def choose_options(self) -> PlanOptions:
        requested = frozenset({at(AGENT)}) if self.is_requested else frozenset()
        return PlanOptions(to_replace=requested, now=CREATED + 90 * DAY - (0 if self.is_due else 1))

    def expect(self) -> tuple[Action | None, Reason | str | None]:
        """The expected action with its reason, or with the code of the problem that prevents it."""
        if self.ownership == "unmanaged":
            if self.is_requested or self.differs == "owner_id":
                return None, "not-owned"
            return Action.ADOPT, Reason.UNOWNED
        reason = self._find_reason_to_replace()
        if reason is not None:
            return (None, PROBLEMS[self.obstacle]) if self.obstacle else (Action.REPLACE, reason)
        if self.ownership == "renamed":
            return Action.MOVE, Reason.RENAMED
        if self.differs:
            return Action.UPDATE, Reason.FIELDS
        return (Action.UPDATE, Reason.RECORD) if self.is_protected or self.secret == "confirmed" else (None, None)

    def _find_reason_to_replace(self) -> Reason | None:
        if self.differs == "owner_id":
            return Reason.IMMUTABLE
        if self.is_requested:
            return Reason.REQUESTED
        if self.secret == "undelivered":
            return Reason.UNDELIVERED
        if self.secret == "confirmed":
            return None  # it counts as delivered from the next plan on
        if self.is_overwritten:
            return Reason.OVERWRITTEN
        return Reason.ROTATION if self.is_due else None


OBSTACLES = ("", *PROBLEMS)
BOTH = (False, True)


def list_states(ownership: str, secret: str) -> list[State]:
    """Overlap and protection alternate over the combinations of the other properties."""
    states = product(("", "description", "owner_id"), BOTH, BOTH, BOTH, OBSTACLES)
    return [
        State(ownership, secret, differs, requested, due, DAY * (number % 2), overwritten, number % 4 > 1, obstacle)
        for number, (differs, requested, due, overwritten, obstacle) in enumerate(states)
    ]


@pytest.mark.parametrize("secret", ["delivered", "undelivered", "confirmed"])
@pytest.mark.parametrize("ownership", ["managed", "renamed", "unmanaged"])
def test_each_state_of_a_credential_has_its_outcome(ownership: str, secret: str) -> None:
    for state in list_states(ownership, secret):
        plan = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
        action, reason = state.expect()
        if action is not None:
            assert [(change.action, change.reason) for change in plan.changes] == [(action, reason)], state
            assert plan.errors == (), state
        else:
            assert [problem.code for problem in plan.errors] == ([] if reason is None else [reason]), state
            assert (plan.changes, plan.calls) == ((), ()), state


def test_only_a_rotation_with_an_overlap_retains_the_old_credential() -> None:
    for state in list_states("managed", "delivered"):
        plan = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
        action, reason = state.expect()
        deleted = [call.target for call in plan.calls if call.verb is Verb.DELETE]
        is_retained = reason is Reason.ROTATION and state.overlap > 0
        assert deleted == (["cr_1"] if action is Action.REPLACE and not is_retained else []), state


def test_each_written_owner_record_equals_the_manifest() -> None:
    for ownership, secret in product(("managed", "renamed", "unmanaged"), ("delivered", "confirmed")):
        for state in list_states(ownership, secret):
            plan = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
            records = [call.owner for call in plan.calls if call.owner is not None]
            action, reason = state.expect()
            if action is Action.REPLACE:
                pending = [True, False]
            else:  # the owner record of a field that was changed on the platform is current
                is_current = reason is Reason.FIELDS and secret == "delivered" and not state.is_protected
                pending = [] if action is None or is_current else [False]
            assert [owner.pending for owner in records] == pending, state
            for owner in records:
                assert (owner.address, owner.protect, owner.applied) == (at(AGENT), state.is_protected, APPLIED), state
                assert owner.replaces == ("cr_1" if action is Action.REPLACE else None), state

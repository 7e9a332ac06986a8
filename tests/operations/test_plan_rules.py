"""Rules of plan files: each valid plan below is within the rules, each invalid one breaks the named rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Call, Observed, OwnerDraft, Plan, Verb
from reconciler.model.value import Ref, Secret, Template
from reconciler.operations.applying import plan_rules
from tests.harness.builders import at

POLICY, DOMAIN, BOT, ROUTE = (
    at(text) for text in ("IPPolicy/a", "ReservedDomain/web", "BotUser/b", "HTTPSEdgeRoute/r")
)
ENDPOINT, EDGE = at("CloudEndpoint/e"), at("HTTPSEdge/h")
ROUTES = "/edges/https/edghts_1/routes"
RECORD = owners.write("", Owner("prod", POLICY, "intent"))
URL = "https://e.example.com"
TRAFFIC = '{"on_http_request":[{"actions":[{"type":"deny"}]}]}'


def create(address: Address, path: str | Template, body: Mapping[str, Any], **fields: Any) -> Plan:
    call = Call(f"create {address}", address, Verb.CREATE, path, body=body, owner=OwnerDraft(address), **fields)
    return Plan("prod", changes=(Change(address, Action.CREATE, Reason.DECLARED),), calls=(call,))


def change(
    address: Address,
    action: Action,
    verb: Verb,
    path: str | Template,
    body: Mapping[str, Any] | None,
    *,
    id: str,
    reason: Reason = Reason.FIELDS,
    owner: str = "prod X/x",
    protected: bool = False,
    **fields: Any,
) -> Plan:
    """A plan with one call, which acts on the object observed at the address."""
    call = Call(f"{verb} {address}", address, verb, path, id.rpartition("/")[2], body, **fields)
    found = Change(address, action, reason, id=id.rpartition("/")[2], protected=protected)
    return Plan("prod", changes=(found,), calls=(call,), observed={address: Observed(id, {}, owner)})


def approve(plan: Plan, *approvals: tuple[str, str, int]) -> Plan:
    return replace(plan, approvals=tuple(Approval(*approval, "why") for approval in approvals))


CREATED = create(POLICY, "/ip_policies", {"description": "a"})
UPDATED = change(POLICY, Action.UPDATE, Verb.UPDATE, "/ip_policies/ipp_1", {"description": "b"}, id="ipp_1")
MODULE = change(
    ROUTE, Action.UPDATE, Verb.PUT, f"{ROUTES}/edghtsrt_1/compression", {"enabled": True}, id="edghts_1/edghtsrt_1"
)
DETACHED = change(ROUTE, Action.UPDATE, Verb.REMOVE, f"{ROUTES}/edghtsrt_1/saml", None, id="edghts_1/edghtsrt_1")
DELETED = change(POLICY, Action.DELETE, Verb.DELETE, "/ip_policies/ipp_1", None, id="ipp_1", reason=Reason.REMOVED)
DOMAIN_DELETED = change(
    DOMAIN, Action.DELETE, Verb.DELETE, "/reserved_domains/rd_1", None, id="rd_1", reason=Reason.REMOVED
)
FORGOTTEN = change(POLICY, Action.FORGET, Verb.UPDATE, "/ip_policies/ipp_1", {"metadata": "mine"}, id="ipp_1")
CLOUD = create(ENDPOINT, "/endpoints", {"type": "cloud", "url": URL, "traffic_policy": TRAFFIC})
RENEWED = change(
    POLICY, Action.UPDATE, Verb.UPDATE, "/ip_policies/ipp_1", {"metadata": ""}, id="ipp_1", owner=f"prod {POLICY}",
)  # fmt: skip
NEW_ROUTE = replace(
    create(
        ROUTE,
        Template(("/edges/https/", Ref(EDGE), "/routes")),
        {"match_type": "path_prefix", "match": "/"},
    ),
)
COMPLETED = replace(
    CREATED,
    calls=(
        *CREATED.calls,
        Call("patch", POLICY, Verb.UPDATE, Template(("/ip_policies/", Ref(POLICY))), body={"description": "x"}),
    ),
)

VALID = {
    "a create": CREATED,
    "a create with a fixed field": CLOUD,
    "a create below an object that the plan creates": NEW_ROUTE,
    "a create that a further call completes": COMPLETED,
    "an update": UPDATED,
    "an update with an owner record": replace(
        UPDATED, calls=(replace(UPDATED.calls[0], body={"metadata": ""}, owner=OwnerDraft(POLICY, "my own text")),)
    ),
    "an update that empties a field": replace(
        UPDATED,
        calls=(replace(UPDATED.calls[0], body={"description": None, "metadata": ""}, owner=OwnerDraft(POLICY)),),
    ),
    "an id with a character that a path encodes": change(
        POLICY, Action.UPDATE, Verb.UPDATE, "/ip_policies/ipp%201", {"description": "b"}, id="ipp 1"
    ),
    "an update of a kind with a fixed field": change(
        ENDPOINT, Action.UPDATE, Verb.UPDATE, "/endpoints/ep_1", {"description": "b"}, id="ep_1"
    ),
    "a duplicate that is deleted": replace(
        change(POLICY, Action.DELETE, Verb.DELETE, "/ip_policies/ipp_2", None, id="ipp_2", reason=Reason.DUPLICATE),
        observed={POLICY: Observed("ipp_1", {}, "prod IPPolicy/a")},
    ),
    "an update of what only a deletion loses": change(
        DOMAIN, Action.UPDATE, Verb.UPDATE, "/reserved_domains/rd_1", {"description": "b"}, id="rd_1", protected=True
    ),
    "a module": MODULE,
    "the end of a module": DETACHED,
    "a deletion": DELETED,
    "a deletion that was approved": approve(DOMAIN_DELETED, ("delete", "ReservedDomain", 1)),
    "one of several that were approved": approve(
        DOMAIN_DELETED, ("delete", "ReservedDomain", 3), ("delete", "ReservedDomain", 1)
    ),
    "an object that is forgotten": FORGOTTEN,
    "metadata of a kind without owner records": change(
        BOT, Action.UPDATE, Verb.UPDATE, "/bot_users/bot_1", {"active": False}, id="bot_1", owner="other BotUser/b"
    ),
    "an object that nobody manages": replace(UPDATED, observed={POLICY: Observed("ipp_1", {}, "")}),
    "a secret that was not read": create(
        at("Secret/s"), "/vault_secrets", {"name": "s", "value": Secret("", "env:X"), "vault_id": Ref(at("Vault/v"))}
    ),
}


@pytest.mark.parametrize("plan", VALID.values(), ids=VALID)
def test_a_plan_within_the_rules_has_no_problem(plan: Plan) -> None:
    assert [str(problem) for problem in plan_rules.find_problems(plan)] == []


def edit(plan: Plan, place: int = 0, **fields: Any) -> Plan:
    """The plan with one of its calls changed."""
    calls = list(plan.calls)
    calls[place] = replace(calls[place], **fields)
    return replace(plan, calls=tuple(calls))


def with_change(plan: Plan, **fields: Any) -> Plan:
    return replace(plan, changes=tuple(replace(planned, **fields) for planned in plan.changes))


OTHER = at("ReservedDomain/x")
TWO_DELETED = replace(
    DOMAIN_DELETED,
    changes=(*DOMAIN_DELETED.changes, replace(DOMAIN_DELETED.changes[0], address=OTHER, id="rd_2")),
    calls=(*DOMAIN_DELETED.calls, Call("x", OTHER, Verb.DELETE, "/reserved_domains/rd_2", "rd_2")),
    observed={**DOMAIN_DELETED.observed, OTHER: Observed("rd_2", {}, "prod X/x")},
)

BROKEN: dict[str, tuple[Plan, str]] = {
    "no change": (replace(CREATED, changes=()), "create IPPolicy/a: no listed change of IPPolicy/a includes this call"),
    "a change of another resource": (
        with_change(CREATED, address=BOT),
        "create IPPolicy/a: no listed change of IPPolicy/a includes this call",
    ),
    "a delete that is listed as an update": (
        with_change(DELETED, action=Action.UPDATE),
        "delete IPPolicy/a: no listed change of IPPolicy/a includes this call",
    ),
    "an id that is not that of a create": (edit(CREATED, id="create IPPolicy/b"), "is not the id of a create"),
    "a create on an object": (
        edit(CREATED, target="ipp_1"),
        "/ip_policies is not a path of IPPolicy for this call",
    ),
    "a create on the path of an object": (
        edit(CREATED, path="/ip_policies/x"),
        "/ip_policies/x is not a path of IPPolicy for this call",
    ),
    "a create on the path of another kind": (
        edit(CREATED, path="/api_keys"),
        "/api_keys is not a path of IPPolicy for this call",
    ),
    "a longer path": (
        edit(UPDATED, path="/ip_policies/ipp_1/x"),
        "/ip_policies/ipp_1/x is not a path of IPPolicy for this call",
    ),
    "the path of another object": (
        edit(UPDATED, path="/ip_policies/ipp_2"),
        "/ip_policies/ipp_2 is not a path of IPPolicy for this call",
    ),
    "a path upwards": (
        edit(NEW_ROUTE, path="/edges/https/../routes"),
        "/edges/https/../routes is not a path of HTTPSEdgeRoute for this call",
    ),
    "a path that names no object": (edit(UPDATED, target=None), "is not a path of IPPolicy for this call"),
    "a template that names no object of a delete": (
        edit(DELETED, path=Template(("/ip_policies/", Ref(POLICY))), target=None),
        "/ip_policies/_ is not a path of IPPolicy for this call",
    ),
    "a module that the kind does not have": (
        edit(MODULE, path=f"{ROUTES}/edghtsrt_1/mutual_tls"),
        "/mutual_tls is not a path of HTTPSEdgeRoute for this call",
    ),
    "a field that is no module": (
        edit(MODULE, path=f"{ROUTES}/edghtsrt_1/match", body={}),
        "/match is not a path of HTTPSEdgeRoute for this call",
    ),
    "a module of a kind without any": (
        replace(
            UPDATED, calls=(Call("put", POLICY, Verb.PUT, "/ip_policies/ipp_1/backend", "ipp_1", {"description": "b"}),)
        ),
        "/ip_policies/ipp_1/backend is not a path of IPPolicy for this call",
    ),
    "another object": (
        edit(UPDATED, path="/ip_policies/ipp_2", target="ipp_2"),
        "acts on ipp_2, which is not the object of IPPolicy/a",
    ),
    "an object that was not observed": (
        replace(UPDATED, observed={}),
        "changes ipp_1 without the state that the plan observed",
    ),
    "an object of another stack": (
        replace(UPDATED, observed={POLICY: Observed("ipp_1", {}, "production IPPolicy/a")}),
        "acts on an object managed by production IPPolicy/a",
    ),
    "a create without an owner record": (edit(CREATED, owner=None), "creates an object without an owner record"),
    "an owner record of another resource": (
        edit(CREATED, owner=OwnerDraft(at("IPPolicy/b"))),
        "writes an owner record of IPPolicy/b",
    ),
    "a second owner record": (
        edit(CREATED, owner=OwnerDraft(POLICY, RECORD)),
        "has an owner record in its metadata",
    ),
    "a second owner record in a secret": (
        edit(CREATED, owner=OwnerDraft(POLICY, Secret(RECORD, "env:X"))),
        "has an owner record in its metadata",
    ),
    "metadata without the owner record": (edit(UPDATED, body={"metadata": "x"}), "overwrites the owner record"),
    "an owner record where an object is forgotten": (
        edit(FORGOTTEN, body={"metadata": RECORD}),
        "overwrites the owner record",
    ),
    "a delete with a body": (edit(DELETED, body={}), "delete IPPolicy/a: sends a body"),
    "the end of a module with a body": (edit(DETACHED, body={}), "sends a body"),
    "another fixed value": (
        edit(CLOUD, body={"type": "agent", "url": URL, "traffic_policy": TRAFFIC}),
        "is not a create of CloudEndpoint",
    ),
    "no fixed value": (edit(CLOUD, body={"url": URL, "traffic_policy": TRAFFIC}), "is not a create of CloudEndpoint"),
    "unknown fields": (edit(UPDATED, body={"y": 1, "x": 1}), "update IPPolicy/a: IPPolicy has no field x"),
    "a field that is part of the path": (
        edit(NEW_ROUTE, body={"match_type": "path_prefix", "match": "/", "edge_id": "e"}),
        "HTTPSEdgeRoute has no field edge_id",
    ),
    "an invalid value": (edit(UPDATED, body={"description": 3}), "description: expected text, found a whole number"),
    "an invalid value of a module": (
        edit(MODULE, body={"enabled": "often"}),
        "compression.enabled: expected true or false, found text",
    ),
    "a create without a required field": (
        create(at("IPPolicyRule/r"), "/ip_policy_rules", {"ip_policy_id": Ref(POLICY)}),
        "cidr: missing required field",
    ),
    "an empty field of a create": (edit(NEW_ROUTE, body={"match_type": "", "match": "/"}), "match_type: "),
    "a deletion that needs approval": (
        DOMAIN_DELETED,
        "deletes 1 without listing the required approval --allow delete:ReservedDomain=1",
    ),
    "a deletion with the approval of another kind": (
        approve(DOMAIN_DELETED, ("delete", "IPPolicy", 1), ("update", "ReservedDomain", 1)),
        "--allow delete:ReservedDomain=1",
    ),
    "a deletion of a protected resource": (
        with_change(DELETED, protected=True),
        "--allow delete-protected:IPPolicy=1",
    ),
    "a deletion of an object that its record protects": (
        replace(DELETED, observed={POLICY: Observed("ipp_1", {}, "prod IPPolicy/a, protected")}),
        "--allow delete-protected:IPPolicy=1",
    ),
    "a protected deletion with a weaker approval": (
        approve(with_change(DOMAIN_DELETED, protected=True), ("delete", "ReservedDomain", 1)),
        "--allow delete-protected:ReservedDomain=1",
    ),
    "two deletions with the approval of one": (
        approve(TWO_DELETED, ("delete", "ReservedDomain", 1)),
        "deletes 2 without listing the required approval --allow delete:ReservedDomain=2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("plan", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_plan_that_exceeds_the_rules_is_refused(plan: Plan, problem: str) -> None:
    found = [str(problem) for problem in plan_rules.find_problems(plan)]
    assert len([text for text in found if problem in text]) == 1, found


@pytest.mark.parametrize(
    ("action", "allowed"),
    {
        Action.CREATE: {Verb.CREATE, Verb.UPDATE},
        Action.REPLACE: {Verb.CREATE, Verb.UPDATE, Verb.DELETE},
        Action.UPDATE: {Verb.UPDATE, Verb.PUT, Verb.REMOVE},
        Action.ADOPT: {Verb.UPDATE, Verb.PUT, Verb.REMOVE},
        Action.MOVE: {Verb.UPDATE, Verb.PUT, Verb.REMOVE},
        Action.DELETE: {Verb.DELETE, Verb.UPDATE},
        Action.FORGET: {Verb.UPDATE},
    }.items(),
)
def test_an_action_includes_some_calls_only(action: Action, allowed: set[Verb]) -> None:
    calls = {
        Verb.CREATE: NEW_ROUTE.calls[0],
        Verb.UPDATE: replace(MODULE.calls[0], verb=Verb.UPDATE, path=f"{ROUTES}/edghtsrt_1", body={"match": "/x"}),
        Verb.PUT: MODULE.calls[0],
        Verb.REMOVE: DETACHED.calls[0],
        Verb.DELETE: replace(DETACHED.calls[0], verb=Verb.DELETE, path=f"{ROUTES}/edghtsrt_1"),
    }
    for verb, call in calls.items():
        plan = replace(MODULE, calls=(call,), changes=(replace(MODULE.changes[0], action=action),))
        found = [problem.text for problem in plan_rules.find_problems(plan)]
        assert ([] if verb in allowed else [f"{call.id}: no listed change of {ROUTE} includes this call"]) == found


def test_the_deletion_of_a_resource_declared_absent_needs_a_listed_approval() -> None:
    absent = with_change(DOMAIN_DELETED, reason=Reason.ABSENT)
    assert len(list(plan_rules.find_problems(absent))) == 1
    assert len(list(plan_rules.find_problems(with_change(absent, protected=True)))) == 1


def test_each_problem_has_its_resource_and_a_remedy() -> None:
    plan = replace(UPDATED, calls=(*CREATED.calls, *DOMAIN_DELETED.calls), observed={})
    found = list(plan_rules.find_problems(edit(plan, owner=None)))
    assert [(problem.subject, problem.code) for problem in found] == [
        ("IPPolicy/a", "plan-file-rule"),
        ("IPPolicy/a", "plan-file-rule"),
        ("IPPolicy/a", "plan-file-rule"),
        ("ReservedDomain/web", "plan-file-rule"),
        ("ReservedDomain/web", "plan-file-rule"),
        ("ReservedDomain", "plan-file-rule"),
    ]
    assert {problem.remedy for problem in found} == {"the file was edited, or was not created by `plan`; plan again"}

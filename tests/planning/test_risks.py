"""Which changes are risks: a row per kind, field and direction."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from reconciler import kinds
from reconciler.access.policies import ACTIONS
from reconciler.cli.commands.plan import command as plan_command
from reconciler.model.change import Action, ChangedBy, FieldChange, Order, Risk
from reconciler.model.fields.field import Field
from reconciler.model.kind import Home
from reconciler.model.manifest import Delivery
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.risks import find_risks
from reconciler.planning.planner import PlanOptions
from reconciler.project.settings.project_file import Guards
from tests.harness.builders import (
    LENIENT,
    apply_to,
    at,
    build_account,
    change_of,
    declare,
    live,
    make_plan,
    record,
    ref,
    secret,
    snapshot,
)

Spec = dict[str, Any]

POLICY = declare("IPPolicy/p")
OTHER = declare("IPPolicy/q")
AUTHORITY = declare("CertificateAuthority/c", {"ca_pem": "-----BEGIN CERTIFICATE-----"})
SECOND = declare("CertificateAuthority/d", {"ca_pem": "-----BEGIN CERTIFICATE----- 2"})
HTTPS = declare("HTTPSEdge/e", {"hostports": ["e.example.com:443"]})
RESTRICTED: Spec = {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p")]}}
SERVED: Spec = {"backend": {"backend_id": ref("TunnelGroupBackend/b")}}
CONTEXT = (
    POLICY,
    OTHER,
    AUTHORITY,
    SECOND,
    HTTPS,
    declare("IPPolicyRule/p", {"ip_policy_id": ref("IPPolicy/p"), "cidr": "192.168.0.0/16", "action": "allow"}),
    declare("IPPolicyRule/q", {"ip_policy_id": ref("IPPolicy/q"), "cidr": "172.16.0.0/12", "action": "allow"}),
    declare("TunnelGroupBackend/b", {"labels": {"app": "b"}}),
    declare("TLSEdge/user", {"hostports": ["user.example.com:443"], **SERVED, **RESTRICTED}),
)
ROUTE: Spec = {"edge_id": ref("HTTPSEdge/e"), "match_type": "path_prefix", "match": "/", **SERVED}
MUTUAL: Spec = {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/c")]}}
DENY = {"actions": [{"type": "deny"}], "expressions": ["conn.client_ip != '1.2.3.4'"]}
LIMIT = {"actions": [{"type": "rate-limit", "config": {"name": "all"}}]}
ANSWER = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
LOG = {"actions": [{"type": "log", "config": {"metadata": {"a": "b"}}}]}
DENIED: Spec = {"ip_policy_id": ref("IPPolicy/p"), "cidr": "192.168.1.0/24", "action": "deny"}
RULE: Spec = {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/24", "action": "allow"}


def policy(*rules: Spec) -> Spec:
    return {"on_http_request": list(rules)}


def set_policy(kind: str, *rules: Spec) -> Spec:
    """A traffic policy as a module, with the phase of the kind's protocol."""
    phase = "on_http_request" if kind == "HTTPSEdgeRoute" else "on_tcp_connect"
    return {"traffic_policy": {"value": {phase: list(rules)}}}


def github(**fields: Any) -> Spec:
    return {"oauth": {"provider": {"github": fields}}}


def oidc(**fields: Any) -> Spec:
    return {"oidc": {"issuer": "https://a", "client_id": "a", "client_secret": secret("s"), **fields}}


def saml(**fields: Any) -> Spec:
    return {"saml": {"idp_metadata": secret("<xml/>"), **fields}}


def webhook(provider: str = "github", secret_text: str = "s") -> Spec:
    return {"webhook_verification": {"provider": provider, "secret": secret(secret_text)}}


def endpoint(*rules: Spec, **fields: Any) -> Spec:
    return {"url": "https://a.example.com", "traffic_policy": policy(*rules, ANSWER), **fields}


# Kind, before, after, and whether that widens access. `None` stands for a resource that is not declared.
WIDER: list[tuple[str, Spec | None, Spec | None, bool]] = [
    *(
        (kind, before, after, widens)
        for kind in ("TLSEdge", "TCPEdge", "HTTPSEdgeRoute")
        for before, after, widens in (
            (RESTRICTED, {}, True),
            ({}, RESTRICTED, False),
            (RESTRICTED, {"ip_restriction": {**RESTRICTED["ip_restriction"], "enabled": False}}, True),
            ({"ip_restriction": {**RESTRICTED["ip_restriction"], "enabled": False}}, RESTRICTED, False),
            (RESTRICTED, {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p"), ref("IPPolicy/q")]}}, True),
            (set_policy(kind, DENY), set_policy(kind), True),
            (set_policy(kind, DENY), set_policy(kind, LOG, DENY), False),
            (set_policy(kind, DENY), {}, True),
            (set_policy(kind, LOG), {}, False),
            ({}, set_policy(kind, DENY), False),
            ({"description": "a"}, {"description": "b"}, False),
        )
    ),
    *(
        (kind, before, after, widens)
        for kind in ("TLSEdge", "HTTPSEdge")
        for before, after, widens in (
            (MUTUAL, {}, True),
            ({}, MUTUAL, False),
            (MUTUAL, {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/d")]}}, True),
            ({"tls_termination": {"min_version": "1.3"}}, {"tls_termination": {"min_version": "1.2"}}, True),
            ({"tls_termination": {"min_version": "1.2"}}, {"tls_termination": {"min_version": "1.3"}}, False),
            ({"tls_termination": {"min_version": "1.3"}}, {"tls_termination": {}}, True),  # the platform's choice
        )
    ),
    (
        "TLSEdge",
        {**set_policy("TLSEdge", DENY), "tls_termination": {}},
        {**set_policy("TLSEdge", DENY), "tls_termination": {"terminate_at": "upstream"}},
        True,
    ),
    ("HTTPSEdgeRoute", github(email_domains=["a.com"]), github(email_domains=["a.com", "b.com"]), True),
    ("HTTPSEdgeRoute", github(email_domains=["a.com", "b.com"]), github(email_domains=["a.com"]), False),
    ("HTTPSEdgeRoute", github(email_domains=["a.com"]), github(), True),
    ("HTTPSEdgeRoute", github(), github(email_domains=["a.com"]), False),
    ("HTTPSEdgeRoute", github(email_addresses=["a@a.com"]), github(email_addresses=["b@a.com"]), True),
    ("HTTPSEdgeRoute", github(teams=["a"]), github(teams=["a", "b"]), True),
    ("HTTPSEdgeRoute", github(organizations=["a"]), github(), True),
    ("HTTPSEdgeRoute", github(), {"oauth": {"provider": {"google": {}}}}, True),
    ("HTTPSEdgeRoute", github(), {}, True),
    ("HTTPSEdgeRoute", {}, github(), False),
    ("HTTPSEdgeRoute", oidc(), oidc(issuer="https://b"), True),
    ("HTTPSEdgeRoute", oidc(), oidc(client_id="b"), True),
    ("HTTPSEdgeRoute", oidc(), oidc(maximum_duration=60), False),
    ("HTTPSEdgeRoute", oidc(), oidc(options_passthrough=True), True),
    ("HTTPSEdgeRoute", oidc(options_passthrough=True), oidc(), False),
    ("HTTPSEdgeRoute", saml(authorized_groups=["a"]), saml(), True),
    ("HTTPSEdgeRoute", saml(force_authn=True), saml(), True),
    ("HTTPSEdgeRoute", saml(allow_idp_initiated=False), saml(), True),  # back to the default
    ("HTTPSEdgeRoute", saml(), saml(idp_metadata=secret("<other/>")), True),
    ("HTTPSEdgeRoute", webhook(), {}, True),
    ("HTTPSEdgeRoute", webhook(), webhook("slack"), True),
    ("HTTPSEdgeRoute", {"user_agent_filter": {"allow": ["a"]}}, {"user_agent_filter": {"allow": ["a", "b"]}}, True),
    ("HTTPSEdgeRoute", {"user_agent_filter": {"deny": ["a", "b"]}}, {"user_agent_filter": {"deny": ["a"]}}, True),
    ("HTTPSEdgeRoute", {"user_agent_filter": {"deny": ["a"]}}, {"user_agent_filter": {"deny": ["a", "b"]}}, False),
    ("CloudEndpoint", endpoint(DENY), endpoint(), True),
    ("CloudEndpoint", endpoint(), endpoint(DENY), False),
    ("CloudEndpoint", endpoint(DENY), endpoint({**DENY, "expressions": []}), False),  # denies all
    ("CloudEndpoint", endpoint(LIMIT), endpoint(), True),  # no gate, but a filter
    ("CloudEndpoint", endpoint(LIMIT), endpoint(LOG, LIMIT), False),
    ("CloudEndpoint", endpoint(), endpoint(LIMIT), False),
    ("HTTPSEdgeRoute", set_policy("HTTPSEdgeRoute", LIMIT), {}, True),
    ("HTTPSEdgeRoute", set_policy("HTTPSEdgeRoute", LOG), {}, False),
    ("HTTPSEdgeRoute", webhook(), webhook(secret_text="t"), True),
    ("CloudEndpoint", endpoint(bindings=["kubernetes"]), endpoint(bindings=["public"]), True),
    ("CloudEndpoint", endpoint(bindings=["kubernetes"]), endpoint(), True),  # public by default
    ("CloudEndpoint", endpoint(), endpoint(bindings=["kubernetes"]), False),
    ("IPPolicyRule", None, RULE, True),
    ("IPPolicyRule", RULE, None, False),
    ("IPPolicyRule", None, DENIED, False),
    ("IPPolicyRule", DENIED, None, True),
    ("IPPolicyRule", {**RULE, "action": "deny"}, None, False),  # no rule allows the network
    ("IPPolicyRule", DENIED, {**DENIED, "action": "allow"}, True),  # replaces the rule
    ("IPPolicyRule", RULE, {**RULE, "action": "deny"}, False),
    ("IPPolicyRule", RULE, {**RULE, "cidr": "10.0.0.0/16"}, True),
    ("IPPolicyRule", RULE, {**RULE, "cidr": "10.0.0.0/25"}, False),
    ("IPPolicyRule", RULE, {**RULE, "cidr": "2001:db8::/64"}, True),
    ("IPPolicyRule", DENIED, {**DENIED, "cidr": "192.168.1.0/25"}, True),
    ("IPPolicyRule", None, {**RULE, "cidr": "192.168.1.0/24"}, False),  # another rule allows the network already
    ("IPRestriction", {"type": "api", "enforced": True}, {"type": "api", "enforced": False}, True),
    ("IPRestriction", {"type": "api", "enforced": False}, {"type": "api", "enforced": True}, False),
    ("IPRestriction", {"type": "agent", "enforced": True}, None, True),
    ("IPRestriction", {"type": "agent"}, None, False),
    ("IPRestriction", {"type": "api"}, {"type": "api", "ip_policy_ids": [ref("IPPolicy/q")]}, False),  # not enforced
    (
        "IPRestriction",
        {"type": "api", "enforced": True},
        {"type": "api", "enforced": True, "ip_policy_ids": [ref("IPPolicy/q")]},
        True,
    ),
    ("TunnelCredential", {"acl": ["bind:a.example.com"]}, {"acl": ["bind:*.example.com"]}, True),
    ("TunnelCredential", {"acl": ["bind:a.example.com"]}, {}, True),
    ("TunnelCredential", {}, {"acl": ["bind:a.example.com"]}, False),
    ("SSHCredential", {"acl": ["bind:a.example.com"]}, {"acl": ["bind:a.example.com", "bind:b.example.com"]}, True),
    ("BotUser", {"name": "b", "active": False}, {"name": "b"}, True),
]
BASE: dict[str, Spec] = {
    "HTTPSEdge": {"hostports": ["x.example.com:443"]},
    "HTTPSEdgeRoute": ROUTE,
    "TCPEdge": {"hostports": ["x.example.com:20000"], **SERVED},
    "TLSEdge": {"hostports": ["x.example.com:443"], **SERVED},
    "IPRestriction": {"ip_policy_ids": [ref("IPPolicy/p")]},
    "SSHCredential": {"public_key": "ssh-ed25519 AAAA a"},
}
ALLOWED = PlanOptions(allow={**LENIENT.allow, **{("delete", kind.name): 99 for kind in kinds.every()}})


def risks(kind: str, before: Spec | None, after: Spec | None) -> set[Risk]:
    def declare_all(spec: Spec | None) -> list[Any]:
        below = [declare("HTTPSEdgeRoute/below", {**ROUTE, "edge_id": ref("HTTPSEdge/x")})]
        declared = [] if spec is None else [declare(f"{kind}/x", {**BASE.get(kind, {}), **spec})]
        return [*declared, *(below if kind == "HTTPSEdge" else [])]

    world = build_account(*CONTEXT, *declare_all(before))
    plan = make_plan(*CONTEXT, *declare_all(after), seen=world.snapshot(), options=ALLOWED)
    assert plan.problems == ()
    (change,) = (change for change in plan.changes if change.address == at(f"{kind}/x"))
    return set(change.risks)


@pytest.mark.parametrize(
    ("kind", "before", "after", "widens"), WIDER, ids=[f"{number}-{row[0]}" for number, row in enumerate(WIDER)]
)
def test_changes_that_widen_access_have_the_risk(
    kind: str, before: Spec | None, after: Spec | None, widens: bool
) -> None:
    assert (Risk.WIDENS_ACCESS in risks(kind, before, after)) is widens


@pytest.mark.parametrize(
    ("kind", "before", "after", "disables"),
    [
        ("BotUser", {"name": "b"}, {"name": "b", "active": False}, True),
        ("BotUser", {"name": "b"}, None, True),
        ("BotUser", {"name": "b"}, {"name": "c"}, False),
        ("TunnelCredential", {}, None, True),
        ("TunnelCredential", {}, {"description": "d"}, False),
        ("SSHCredential", {}, None, True),
        ("AgentIngress", {"domain": "connect.example.com"}, None, True),
        ("IPPolicyRule", RULE, None, False),
    ],
)
def test_disabling_changes_have_the_risk(kind: str, before: Spec, after: Spec | None, disables: bool) -> None:
    assert (Risk.DISABLES_AGENT in risks(kind, before, after)) is disables


def test_a_rule_of_a_new_policy_does_not_widen_access() -> None:
    plan = make_plan(POLICY, declare("IPPolicyRule/x", RULE))
    assert [change.risks for change in plan.changes] == [(), ()]


@pytest.mark.parametrize(("way", "runs"), [("to_command", True), ("to_file", False)])
def test_a_secret_delivered_to_a_command_is_a_risk(way: str, runs: bool) -> None:
    declared = replace(declare("TunnelCredential/c"), deliver={"token": Delivery(way, "x")})
    (change,) = make_plan(declared).changes
    assert (Risk.ISSUES_CREDENTIAL in change.risks, Risk.RUNS_COMMAND in change.risks) == (True, runs)


def test_a_reference_to_a_new_policy_widens_access() -> None:
    edge = {**BASE["TLSEdge"], **RESTRICTED}
    world = build_account(*CONTEXT, declare("TLSEdge/x", edge))
    other = declare("TLSEdge/x", {**edge, "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/new")]}})
    rule = declare("IPPolicyRule/new", {**RULE, "ip_policy_id": ref("IPPolicy/new")})
    plan = make_plan(*CONTEXT, declare("IPPolicy/new"), rule, other, seen=world.snapshot())
    assert Risk.WIDENS_ACCESS in change_of(plan, "TLSEdge/x").risks


@pytest.mark.parametrize(
    ("action", "cidr"), [("allow", "an unknown notation"), ("deny", (10 << 24) + 5), ("deny", False), ("deny", None)]
)
def test_a_rule_with_an_unreadable_live_network_widens_access(action: str, cidr: object) -> None:
    body = {"ip_policy": {"id": "ipp_1"}, "cidr": cidr, "action": action}
    rule = live("IPPolicyRule", "ipr_1", body, owner=record("IPPolicyRule/x", {}))
    declared = declare("IPPolicyRule/x", {**RULE, "action": action, "ip_policy_id": "ipp_1"})
    backend = live("TunnelGroupBackend", "bkdtg_1", {"labels": {"a": "b"}})
    modules = {
        "backend": {"enabled": True, "backend": {"id": "bkdtg_1"}},
        "ip_restriction": {"enabled": True, "ip_policies": [{"id": "ipp_1"}]},
    }
    edge = live("TLSEdge", "edgtls_1", {"hostports": ["x.example.com:443"], **modules})
    allowed = {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"}
    others = (live("IPPolicy", "ipp_1"), live("IPPolicyRule", "ipr_2", allowed), backend, edge)
    plan = make_plan(declared, seen=snapshot(*others, rule), options=LENIENT)
    assert Risk.WIDENS_ACCESS in change_of(plan, "IPPolicyRule/x").risks


def test_a_restriction_removed_on_the_platform_and_restored_does_not_widen_access() -> None:
    edge = declare("TLSEdge/x", {**BASE["TLSEdge"], **RESTRICTED})
    world = build_account(*CONTEXT, edge)
    (key,) = (key for key, body in world.objects.items() if body.get("hostports") == ["x.example.com:443"])
    world.objects[key]["ip_restriction"] = None
    (change,) = make_plan(*CONTEXT, edge, seen=world.snapshot()).changes
    assert change.risks == ()


def test_an_adopted_object_is_compared_with_its_live_fields() -> None:
    world = build_account(*CONTEXT, declare("TLSEdge/x", {**BASE["TLSEdge"], **RESTRICTED}))
    after = declare("TLSEdge/x", BASE["TLSEdge"])
    apply_to(world, *CONTEXT, declare("TLSEdge/x", {**BASE["TLSEdge"], **RESTRICTED}))
    (change,) = make_plan(*CONTEXT, after, seen=world.snapshot()).changes
    assert Risk.WIDENS_ACCESS in change.risks


def test_each_field_that_restricts_access_is_in_the_table() -> None:
    """A new kind or field with a word of `kinds.rules.access` needs a row above."""
    tested: dict[str, set[str]] = {}
    for kind, before, after, _ in WIDER:
        for spec in (before, after):
            tested.setdefault(kind, set()).update(list_paths(spec or {}))
    declared = {
        (kind.name, path)
        for kind in kinds.every()
        if kind.home is Home.PLATFORM
        for path in find_marked_fields(kind.fields)
        if not path.startswith("oauth.provider.") or path.startswith("oauth.provider.github.")
    }
    missing = {(kind, path) for kind, path in declared if path not in tested.get(kind, set())}
    assert missing - TESTED_ELSEWHERE == set()


# Fields of modules that other rows test.
TESTED_ELSEWHERE = {
    ("HTTPSEdgeRoute", "oauth.options_passthrough"),
    ("HTTPSEdgeRoute", "saml.options_passthrough"),
    ("HTTPSEdgeRoute", "oauth.provider.github.client_id"),
}


def list_paths(spec: Any, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name, value in spec.items():
        found.add(f"{prefix}{name}")
        if isinstance(value, dict):
            found |= list_paths(value, f"{prefix}{name}.")
    return found


def find_marked_fields(fields: tuple[Field, ...], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for field in fields:
        if any(word.risk is Risk.WIDENS_ACCESS for word in field.raises):
            found.add(f"{prefix}{field.name}")
        found |= find_marked_fields(field.fields, f"{prefix}{field.name}.")
    return found


# --- approvals of risks -----------------------------------------------------------------------------------------------


def test_a_project_may_require_approval_for_a_risk() -> None:
    edge = {**BASE["TLSEdge"], **RESTRICTED}
    world = build_account(*CONTEXT, declare("TLSEdge/x", edge))
    after = (*CONTEXT, declare("TLSEdge/x", BASE["TLSEdge"]))
    required = PlanOptions(require_approval=frozenset({Risk.WIDENS_ACCESS}))
    (approval,) = make_plan(*after, seen=world.snapshot(), options=required).missing_approvals
    assert approval.flag == "--allow widens_access:*=1"
    assert [item.subject for item in approval.items] == ["tls://x.example.com"]
    allowed = PlanOptions(require_approval=required.require_approval, allow={("widens_access", "*"): 1})
    assert make_plan(*after, seen=world.snapshot(), options=allowed).missing_approvals == ()
    assert make_plan(*after, seen=world.snapshot()).missing_approvals == ()


def test_settings_and_flags_accept_each_risk_of_a_change() -> None:
    risks = [str(risk) for risk in Risk if risk is not Risk.ADDED]
    annotation = Guards.model_fields["require_approval"].annotation
    assert list(get_args(get_args(annotation)[0])) == risks
    for risk in risks:
        plan = CliRunner().invoke(plan_command, ["--allow", f"{risk}:TLSEdge=1", "--project", "/nowhere"])
        assert "allows nothing" not in plan.output


# --- risks of a decision ----------------------------------------------------------------------------------------------


def decide(kind: str, action: Action | None, **more: Any) -> Decision:
    return replace(Decision(at(f"{kind}/a"), kinds.get(kind), action=action), **more)


@pytest.mark.parametrize("kind", ["TLSEdge", "IPPolicy", "ReservedDomain", "TunnelCredential"])
def test_each_action_has_the_risks_of_its_kind(kind: str) -> None:
    ways = product((None, *Action), (None, *Order), (False, True), ("to_file", "to_command"))
    for action, order, keeps_predecessor, way in ways:
        declared = replace(declare(f"{kind}/a"), deliver={"token": Delivery(way, "x")})
        live_object = None if action is Action.CREATE else live(kind, "id-1")
        decision = decide(
            kind, action, order=order, live=live_object, declaration=declared, keeps_predecessor=keeps_predecessor
        )
        found = set(find_risks(decision))
        is_new = action in (Action.CREATE, Action.REPLACE)
        ends = action in (Action.DELETE, Action.REPLACE) and not keeps_predecessor
        interrupts = action is Action.DELETE or order is Order.DELETE_FIRST
        assert (Risk.INTERRUPTS_TRAFFIC in found) is (kind in ("TLSEdge", "ReservedDomain") and interrupts), decision
        assert (Risk.IRREVERSIBLE in found) is (kind == "ReservedDomain" and ends), decision
        assert (Risk.ISSUES_CREDENTIAL in found) is (kind == "TunnelCredential" and is_new), decision
        runs = kind == "TunnelCredential" and is_new and way == "to_command"
        assert (Risk.RUNS_COMMAND in found) is runs, decision
        # Agents with the credential fail once it is deleted, even if it has a successor.
        disables = kind == "TunnelCredential" and (action is Action.DELETE or (action is Action.REPLACE and ends))
        assert (Risk.DISABLES_AGENT in found) is disables, decision


@pytest.mark.parametrize(
    ("action", "disables"),
    [
        (Action.UPDATE, False),
        (Action.CREATE, False),
        (Action.DELETE, True),
        (Action.REPLACE, True),
        (Action.FORGET, False),
        (None, False),
    ],
)
def test_a_kind_judges_its_object_as_a_whole(action: Action | None, disables: bool) -> None:
    live_object = None if action is Action.CREATE else live("TunnelCredential", "cr_1")
    found = find_risks(decide("TunnelCredential", action, live=live_object, have={"acl": []}, want={"acl": []}))
    assert (Risk.DISABLES_AGENT in found) is disables


def differ(kind: str, top: str, *paths: str) -> tuple[Difference, ...]:
    changes = tuple(FieldChange(path, None, None, ChangedBy.GIT) for path in paths)
    return (Difference(kinds.get(kind).by_name[top], changes),)


SAML = {"force_authn": True, "allow_idp_initiated": False}


@pytest.mark.parametrize(
    ("old", "new", "paths", "widens"),
    [
        (SAML, {**SAML, "force_authn": False}, ["saml.force_authn"], True),
        (SAML, {**SAML, "allow_idp_initiated": True}, ["saml.allow_idp_initiated"], True),
        ({**SAML, "allow_idp_initiated": True}, SAML, ["saml.allow_idp_initiated"], False),
        (SAML, {**SAML, "force_authn": ref("Vault/v", "name")}, ["saml.force_authn"], True),
        (None, SAML, ["saml.force_authn", "saml.allow_idp_initiated"], False),
        # Only what differs is judged.
        (SAML, {**SAML, "force_authn": False}, ["saml.maximum_duration"], False),
    ],
)
def test_a_field_judges_its_change(old: Any, new: Any, paths: list[str], widens: bool) -> None:
    decision = decide(
        "HTTPSEdgeRoute",
        Action.UPDATE,
        live=live("HTTPSEdgeRoute", "rt_1"),
        have={"saml": old},
        want={"saml": new},
        differences=differ("HTTPSEdgeRoute", "saml", *paths),
    )
    assert (Risk.WIDENS_ACCESS in find_risks(decision)) is widens


def test_risks_are_sorted_by_weight() -> None:
    declared = replace(declare("TunnelCredential/a"), deliver={"token": Delivery("to_command", "x")})
    decision = decide(
        "TunnelCredential",
        Action.REPLACE,
        live=live("TunnelCredential", "cr_1"),
        declaration=declared,
    )
    found = find_risks(decision)
    assert found == (Risk.RUNS_COMMAND, Risk.ISSUES_CREDENTIAL, Risk.DISABLES_AGENT)


# --- every action of a traffic policy ---------------------------------------------------------------------------------

SIGNED_IN = {"issuer_url": "https://id.example.com", "client_id": "a", "client_secret": "s"}
REPLACED = {"replacements": [{"from": "a", "to": "b"}]}
SIGNED = {"provider": "github", "secret": "s"}
TOKENS = {
    "issuer": {"allow_list": [{"value": "https://id.example.com"}]},
    "audience": {"allow_list": [{"value": "shop"}]},
    "http": {"tokens": [{"type": "jwt", "method": "header", "name": "Authorization"}]},
    "jws": {"allowed_algorithms": ["RS256"], "keys": {"sources": {"additional_jkus": ["https://id.example.com/k"]}}},
}
GATES: dict[str, Spec] = {  # who passes them gets through
    "basic-auth": {"credentials": ["ann:long-enough-word"]},
    "close-connection": {},
    "deny": {"status_code": 403},
    "forward-internal": {"url": "https://x.internal"},  # the other endpoint may have a gate
    "jwt-validation": TOKENS,
    "oauth": {"provider": "google"},
    "oidc": SIGNED_IN,
    "openid-connect": SIGNED_IN,
    "restrict-ips": {"enforce": True, "allow": ["203.0.113.0/24"]},
    "saml": {"idp_metadata": "<xml/>"},
    "verify-webhook": SIGNED,
    "webhook-validation": SIGNED,
}
FILTERING: dict[str, Spec] = {  # they refuse some requests of everyone
    "owasp-crs-request": {},
    "owasp-crs-response": {},
    "rate-limit": {
        "name": "all",
        "algorithm": "sliding_window",
        "capacity": 30,
        "rate": "60s",
        "bucket_key": ["conn.client_ip"],
    },
    "user-agent-filter": {"deny": ["bot"]},
}
HARMLESS: dict[str, Spec] = {
    "add-headers": {"headers": {"a": "b"}},
    "ai-gateway": {"on_error": "halt"},
    "circuit-breaker": {"error_threshold": "0.5"},
    "compress-response": {},
    "custom-response": {"status_code": 404},
    "http-request": {"url": "https://hooks.example.com"},
    "log": {"metadata": {"a": "b"}},
    "redirect": {"to": "https://b.example.com"},
    "remove-headers": {"headers": ["a"]},
    "request-body-find-replace": REPLACED,
    "response-body-find-replace": REPLACED,
    "set-vars": {"vars": [{"a": "b"}]},
    "sse-find-replace": REPLACED,
    "url-rewrite": {"to": "/b"},
}
TLS = {"terminate-tls": {"min_version": "1.3"}}  # on a connection, and not on a request
PLACES = {"owasp-crs-response": "on_http_response", "response-body-find-replace": "on_http_response"}
PLACES |= {"compress-response": "on_http_response", "sse-find-replace": "on_event_stream_message"}


def removal_of(action: str, config: Spec) -> set[Risk]:
    rule = {"actions": [{"type": action, "config": config}]}
    kind, answer = ("TLSEdge", []) if action in TLS else ("CloudEndpoint", [ANSWER])
    if kind == "TLSEdge":
        return risks(kind, {"traffic_policy": {"value": {"on_tcp_connect": [rule]}}}, {})
    place = PLACES.get(action, "on_http_request")
    before = {"on_http_request": answer, place: [rule, *(answer if place == "on_http_request" else [])]}
    return risks(
        kind,
        {"url": "https://a.example.com", "traffic_policy": before},
        {"url": "https://a.example.com", "traffic_policy": {"on_http_request": answer}},
    )


@pytest.mark.parametrize(("action", "config"), {**GATES, **FILTERING, **TLS}.items())
def test_an_action_that_refuses_requests_is_not_removed_without_the_risk(action: str, config: Spec) -> None:
    assert Risk.WIDENS_ACCESS in removal_of(action, config)


@pytest.mark.parametrize(("action", "config"), HARMLESS.items())
def test_any_other_action_is_removed_without_the_risk(action: str, config: Spec) -> None:
    assert Risk.WIDENS_ACCESS not in removal_of(action, config)


def test_each_action_is_removed_in_a_test() -> None:
    assert sorted([*GATES, *FILTERING, *TLS, *HARMLESS]) == sorted(ACTIONS)

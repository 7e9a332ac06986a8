"""A traffic policy reduced to its gates: no text of the policy is left, and the analysis does not change."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.gates import keep_gates
from reconciler.access.policies import ACTIONS
from reconciler.model.change import Risk
from reconciler.planning.redaction import redact_snapshot
from reconciler.rendering.plan.text import render_text
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.builders import KINDS, declare, live, make_plan, manifest, record, snapshot

TEXT = "canary-of-a-policy"


def policy_of(*actions: Any, expressions: tuple[str, ...] = ()) -> dict[str, Any]:
    rule = {"name": TEXT, "expressions": list(expressions), "actions": list(actions)}
    return {"on_http_request": [rule]}


def test_only_the_settings_that_decide_who_gets_through_are_left() -> None:
    document = policy_of(
        {"type": "restrict-ips", "config": {"enforce": True, "allow": ["203.0.113.0/24"], "comment": TEXT}},
        {"type": "custom-response", "config": {"body": TEXT, "headers": {"x": TEXT}}},
        {"type": "set-vars", "config": {"vars": [{"a": TEXT}]}},
        {"type": "log", "config": {"metadata": {"a": TEXT}}},
        {"type": "oauth", "config": {"provider": "google", "scopes": [TEXT]}},
        {"type": "redirect", "config": {"from": TEXT, "to": TEXT}},
        {"type": "saml", "config": {"idp_metadata": TEXT}},
        {"type": "new-action", "config": {"a": TEXT}},
        expressions=(f"req.url.path == '/{TEXT}'",),
    )
    kept = keep_gates(document)
    assert TEXT not in json.dumps(kept)
    assert [action["type"] for action in kept["on_http_request"][0]["actions"]] == [
        action["type"] for action in document["on_http_request"][0]["actions"]
    ]
    assert kept["on_http_request"][0]["actions"][0]["config"] == {"enforce": True, "allow": ["203.0.113.0/24"]}
    assert kept["on_http_request"][0]["actions"][4]["config"] == {"provider": "google"}


configs = st.dictionaries(
    st.sampled_from(["provider", "enforce", "allow", "from", "url", "body", "credentials", "digest"]),
    st.sampled_from(["google", "${conn.client_ip}", False, ["10.0.0.0/8"], ["${req.url}"], {"a": "b"}]),
    max_size=3,
)
actions = st.builds(
    lambda kind, config: {"type": kind, "config": config}, st.sampled_from([*ACTIONS, "new"]), configs
) | st.just("odd")
rules = st.builds(
    lambda expressions, actions: {"expressions": expressions, "actions": actions},
    st.lists(st.sampled_from(["true", "a == 'b'", " c "]), max_size=2),
    st.lists(actions, max_size=3),
) | st.just(7)
documents = st.dictionaries(
    st.sampled_from(["on_http_request", "on_tcp_connect", "on_http_response", "phase"]),
    st.lists(rules, max_size=3) | st.just("odd"),
    max_size=2,
)


@given(documents)
def test_a_reduced_policy_is_not_reduced_further(document: Any) -> None:
    kept = keep_gates(document)
    assert keep_gates(kept) == kept


# --- objects of other stacks ------------------------------------------------------------------------------------------

OFFICE = declare("IPPolicy/office")
RULE = {"ip_policy_id": "ipp_1", "cidr": "203.0.113.0/24", "action": "allow"}
EVERYONE = declare("IPPolicyRule/all", {"ip_policy_id": "ipp_1", "cidr": "0.0.0.0/0", "action": "allow"})
GATE = {"type": "restrict-ips", "config": {"ip_policies": ["ipp_1"]}}
ANSWER = {"type": "custom-response", "config": {"body": TEXT}}
FOREIGN_POLICY = {
    "on_http_request": [
        {"name": TEXT, "expressions": [f"req.url.path.startsWith('/{TEXT}')"], "actions": [{"type": "deny"}]},
        {"actions": [GATE, ANSWER]},
    ]
}


def account(stack: str) -> Any:
    """An IP policy of this stack, and an endpoint of a stack that admits its networks."""
    return snapshot(
        live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/office", {})),
        live("IPPolicyRule", "ipr_1", RULE, owner=record("IPPolicyRule/office", RULE)),
        live(
            "CloudEndpoint",
            "ep_1",
            {"url": "https://shop.example.com", "bindings": ["public"], "traffic_policy": json.dumps(FOREIGN_POLICY)},
            owner=record("CloudEndpoint/shop", {}, stack=stack),
        ),
    )


DECLARED = (OFFICE, declare("IPPolicyRule/office", RULE), EVERYONE)


def test_an_entry_point_of_another_stack_is_reported_by_host_without_its_gates() -> None:
    plan = make_plan(*DECLARED, seen=account("web"))
    (entry,) = plan.access
    assert (entry.entry_point, entry.verdict.risk) == ("https://shop.example.com", Risk.WIDENS_ACCESS)
    assert (entry.before, entry.after, entry.witness) == ("gates of stack web", "gates of stack web", "")
    assert entry.causes == ("IPPolicyRule/all",)
    assert TEXT not in write_plan(plan) + render_text(plan)


def test_a_snapshot_file_has_the_gates_of_other_stacks_and_no_text_of_their_policies() -> None:
    redacted = redact_snapshot(account("web"), manifest(*DECLARED), KINDS)
    (endpoint,) = redacted.of("CloudEndpoint").objects
    assert TEXT not in json.dumps(endpoint.body)
    assert GATE in endpoint.body["traffic_policy"]["on_http_request"][1]["actions"]
    (own,) = redact_snapshot(account("laws"), manifest(*DECLARED), KINDS).of("CloudEndpoint").objects
    assert TEXT in json.dumps(own.body)


def test_a_plan_from_a_snapshot_file_has_the_same_entry_points() -> None:
    seen = account("web")
    plan = make_plan(*DECLARED, seen=redact_snapshot(seen, manifest(*DECLARED), KINDS))
    assert plan.access == make_plan(*DECLARED, seen=seen).access

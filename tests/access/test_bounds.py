"""Hostile accounts: the analysis ends after bounded work, and says what it did not follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.access import account, networks, policies
from reconciler.access.compare import Difference, compare, describe, identify
from reconciler.access.gates import SETTINGS
from reconciler.access.policies import ACTIONS
from reconciler.access.programs import Builder
from reconciler.model import canonical
from tests.access import live
from tests.access.live import compare_accounts, read_account
from tests.harness.steps import count_steps
from tests.harness.tiers import examples

Objects = dict[str, list[dict[str, Any]]]
BACKEND = {"enabled": True, "backend": {"id": "bkdtg_1"}}
BACKENDS = [{"id": "bkdtg_1", "labels": {"a": "b"}}]


def make_endpoint(number: int, url: str, *rules: dict[str, Any]) -> dict[str, Any]:
    binding = "internal" if ".internal" in url else "public"
    policy = json.dumps({"on_http_request": list(rules)})
    return {"id": f"ep_{number}", "url": url, "bindings": [binding], "traffic_policy": policy}


def forward(*numbers: int) -> list[dict[str, Any]]:
    return [
        {
            "expressions": [f"req.method == 'M{number}'"],
            "actions": [{"type": "forward-internal", "config": {"url": f"https://e{number}.internal"}}],
        }
        for number in numbers
    ]


ANSWER = {"actions": [{"type": "custom-response"}]}


def grow_policy(number: int) -> Objects:
    """An edge behind a policy of 10,000 rules."""
    rules = [
        {"id": f"ipr_{index}", "ip_policy": {"id": "ipp_1"}, "cidr": f"10.{index // 250}.{index % 250}.0/24"}
        | {"action": "deny" if index % 7 == 0 and index < number else "allow"}
        for index in range(10_000)
    ]
    restriction = {"enabled": True, "ip_policies": [{"id": "ipp_1"}]}
    edge = {"id": "edgtls_1", "hostports": ["a.example.com:443"], "backend": BACKEND, "ip_restriction": restriction}
    return {
        "IPPolicy": [{"id": "ipp_1"}],
        "IPPolicyRule": rules,
        "TLSEdge": [edge],
        "TunnelGroupBackend": BACKENDS,
    }


def grow_routes(number: int) -> Objects:
    """An edge with 5,000 routes."""
    routes = [
        {"id": f"edghtsrt_{index}", "edge_id": "edghts_1", "match_type": "path_prefix", "match": f"/{index}"}
        | ({"backend": BACKEND} if index < number else {})
        for index in range(5_000)
    ]
    edge = {"id": "edghts_1", "hostports": ["a.example.com:443"]}
    return {"HTTPSEdge": [edge], "HTTPSEdgeRoute": routes, "TunnelGroupBackend": BACKENDS}


def grow_expressions(number: int) -> Objects:
    """An endpoint with thousands of expressions."""
    rules = [
        {"expressions": [f"req.url.path == '/{index}'"], "actions": [{"type": "deny"}]}
        for index in range(3_000 + number)
    ]
    return {"CloudEndpoint": [make_endpoint(1, "https://a.example.com", *rules, ANSWER)]}


def grow_forwards(number: int) -> Objects:
    """Endpoints that forward to all others: there are more ways through them than can be followed."""
    numbers = range(2, 42)
    inner = [make_endpoint(index, f"https://e{index}.internal", *forward(*numbers)) for index in numbers]
    return {"CloudEndpoint": [make_endpoint(1, "https://a.example.com", *forward(*numbers)[:number]), *inner]}


def grow_circle(number: int) -> Objects:
    """Endpoints that forward in a circle."""
    inner = [make_endpoint(index, f"https://e{index}.internal", *forward(index % 5 + 2)) for index in range(2, 7)]
    return {"CloudEndpoint": [make_endpoint(1, "https://a.example.com", *forward(2, 3)[:number]), *inner]}


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.just("https://[x"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
WAYS = [kind for kind in kinds.every() if kind.access is not None]
ACTION = st.builds(
    lambda kind, config: {"type": kind, "config": config},
    st.sampled_from(sorted(ACTIONS)),
    ODD | st.dictionaries(st.sampled_from(sorted({name for names in SETTINGS.values() for name in names})), ODD),
)
RULE = st.fixed_dictionaries({"expressions": ODD, "actions": ODD | st.lists(ACTION, max_size=2)})
POLICY = st.dictionaries(
    st.sampled_from(["on_tcp_connect", "on_http_request", "on_http_response", "odd"]),
    ODD
    | st.lists(st.fixed_dictionaries({"expressions": ODD, "actions": ODD | st.lists(ACTION, max_size=2)}), max_size=2),
    max_size=2,
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_values_of_any_shape_are_compared(data: st.DataObject) -> None:
    """Whatever a platform answers or a manifest holds, an analysis ends with a result."""
    kind = data.draw(st.sampled_from(WAYS))
    sides: list[Objects] = [
        {
            kind.name: [
                {
                    "id": "id_1",
                    "url": "https://a.example.com",
                    "hostports": ["a.example.com:443"],
                    "bindings": ["public"],
                }
                | data.draw(st.dictionaries(st.sampled_from([field.name for field in kind.fields]), ODD, max_size=3))
                | {"traffic_policy": json.dumps(data.draw(POLICY)), "edge_id": "id_1"}
            ]
        }
        for _ in range(2)
    ]
    builder = Builder()
    for change in compare_accounts(*sides, builder=builder):
        assert identify(change, builder)


@pytest.mark.parametrize(
    ("grow", "few", "many", "verdict", "is_certain"),
    [
        (grow_policy, 10_000, 5_000, "widens", True),
        (grow_routes, 4_999, 5_000, "widens", True),
        (grow_expressions, 1, 0, "widens", False),
        (grow_forwards, 1, 40, "widens", False),
        (grow_circle, 1, 2, "", True),
    ],
)
def test_hostile_accounts_are_compared_within_bounds(
    grow: Callable[[int], Objects], few: int, many: int, verdict: str, is_certain: bool
) -> None:
    found = compare_accounts(grow(few), grow(many))
    assert [(str(change.verdict), change.is_certain) for change in found] == (
        [(verdict, is_certain)] if verdict else []
    )


RULES = [{"expressions": [f"req.url.path == '/{number}'"], "actions": [{"type": "deny"}]} for number in range(10)]
LINES_OF_A_CHANGE = 2_600
"""Lines of Python for one entry point whose networks change, from its objects to its witness and digest."""


def grow_shared_policy(endpoints: int) -> Objects:
    """Endpoints with one policy of many rules."""
    return {
        "CloudEndpoint": [
            make_endpoint(number, f"https://a{number}.example.com", *RULES, ANSWER) for number in range(endpoints)
        ]
    }


def test_entry_points_share_what_was_found_out_about_a_policy_that_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    compile_rule = policies._compile_rule

    def count(rule: Any, *others: Any) -> Any:
        compiled.append(rule)
        return compile_rule(rule, *others)

    monkeypatch.setattr(policies, "_compile_rule", count)
    assert len(compare_accounts({}, grow_shared_policy(30))) == 30
    assert len(compiled) == len(RULES) + 1


def restrict_edges(count: int, network: str) -> Objects:
    """Edges, each with an IP policy of its own that allows one network and denies another."""
    numbers = range(count)
    return {
        "IPPolicy": [{"id": f"ipp_{number}"} for number in numbers],
        "IPPolicyRule": [
            {"id": f"ipr_{number}{action}", "ip_policy": {"id": f"ipp_{number}"}, "action": action}
            | {"cidr": f"{network}.{number}.{half}/25"}
            for number in numbers
            for action, half in (("allow", 0), ("deny", 128))
        ],
        "TLSEdge": [
            {"id": f"edgtls_{number}", "hostports": [f"a{number}-of-{count}.example.com:443"], "backend": BACKEND}
            | {"tls_termination": {"terminate_at": "edge"}}
            | {"ip_restriction": {"enabled": True, "ip_policies": [{"id": f"ipp_{number}"}]}}
            for number in numbers
        ],
        "TunnelGroupBackend": BACKENDS,
    }


def count_comparison(count: int) -> int:
    states = [restrict_edges(count, network) for network in ("10.0", "11.0")]
    changes: list[Difference] = []

    def work() -> None:
        builder = Builder()
        changes.extend(compare(*(read_account(objects, builder) for objects in states)))
        assert all(identify(change, builder) and describe(change.after) for change in changes)

    for cache in (live._read, networks._range_of, networks.decide, account._split_url, canonical._canon_text):
        cache.cache_clear()
    steps = count_steps(work)
    assert len(changes) == count
    return steps


def test_each_further_entry_point_that_changes_takes_the_same_bounded_work() -> None:
    _, few, many = count_comparison(1), count_comparison(10), count_comparison(40)  # kinds are prepared once
    assert (many - few) / 30 < LINES_OF_A_CHANGE


def sign_endpoints(count: int, secret: str) -> Objects:
    signed = [
        make_endpoint(number, f"https://a{number}.example.com", sign(f"{secret} {number}"), ANSWER)
        for number in range(count)
    ]
    return {"CloudEndpoint": signed}


def sign(secret: str) -> dict[str, Any]:
    return {"actions": [{"type": "verify-webhook", "config": {"provider": "github", "secret": secret}}]}


def test_secrets_of_other_entry_points_cost_nothing() -> None:
    """The digest of a change replaces the names of the secrets that it mentions, however many others there are."""
    builder = Builder()
    changes = compare_accounts(sign_endpoints(20, "one"), sign_endpoints(20, "other"), builder=builder)
    identify(changes[0], builder)  # digests of secrets are slow, and cached
    few = count_steps(lambda: identify(changes[0], builder))
    for number in range(1_000):
        builder.name_secret(f"another {number}")
    assert count_steps(lambda: identify(changes[0], builder)) == few

"""Which objects an import writes to the file of one service."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.snapshot import Live
from reconciler.planning.importing.services import find_services, group_by_service, is_service
from reconciler.planning.matching.index import LiveIndex
from reconciler.project.manifests import write
from tests.harness.builders import KINDS, live, manifest, snapshot
from tests.planning.test_importing import POLICY, RULE, propose

BY_NAME = {kind.name: kind for kind in KINDS}
KEYS = st.integers(0, 9)
GRAPHS = st.dictionaries(KEYS, st.lists(KEYS, max_size=4)).map(
    lambda uses: {key: uses.get(key, []) for key in range(10)}
)


def reach(start: int, services: set[int], uses: dict[int, list[int]]) -> set[int]:
    """The objects that an object uses, directly or through others, but not through another service."""
    seen, pending = set(), [start]
    while pending:
        key = pending.pop()
        if key not in seen and (key == start or key not in services):
            seen.add(key)
            pending += uses[key]
    return seen


@given(st.sets(KEYS, max_size=5), GRAPHS, st.randoms())
def test_an_object_used_by_one_service_is_grouped_with_it(
    services: set[int], uses: dict[int, list[int]], random: Random
) -> None:
    found = group_by_service(services, uses)
    reached = {service: reach(service, services, uses) for service in services}
    outside = set().union(
        *(reach(key, services, uses) for key in uses if not any(key in by for by in reached.values()))
    )
    for key in uses:
        users = [service for service in services if key in reached[service]]
        is_grouped = key in services or (len(users) == 1 and key not in outside)
        assert found.get(key) == ((key if key in services else users[0]) if is_grouped else None)
    order = random.sample(sorted(uses), len(uses))
    assert found == group_by_service(set(order) & services, {key: uses[key][::-1] for key in order})


def test_services_are_edges_and_endpoints() -> None:
    assert {kind.name for kind in KINDS if is_service(kind)} >= {"CloudEndpoint", "HTTPSEdge", "TCPEdge", "TLSEdge"}
    assert not any(is_service(BY_NAME[name]) for name in ("ReservedDomain", "FailoverBackend", "TunnelCredential"))


def edge(id: str, name: str) -> Live:
    body = {"description": name, "hostports": [f"{name}.example.com:443"]}
    return live("TLSEdge", id, {**body, "ip_restriction": {"enabled": True, "ip_policies": [{"id": "ipp_1"}]}})


def test_each_resource_is_in_one_file_and_a_shared_one_in_no_service_file() -> None:
    domain = live("ReservedDomain", "rd_1", {"domain": "shop.example.com"})
    shop, other = edge("edgtls_1", "shop"), edge("edgtls_2", "other")
    index = LiveIndex.of(manifest(), snapshot(POLICY, RULE, domain, shop), KINDS)
    assert set(find_services(index).values()) == {shop.key}
    for live_objects in ((POLICY, RULE, domain, shop, other), (other, shop, domain, RULE, POLICY)):
        imported = propose(*live_objects).imported
        files, _ = write.render_files(imported, BY_NAME, "manifests")
        assert {path: [line for line in text.splitlines() if line[:5] == "kind:"] for path, text in files.items()} == {
            "manifests/ip-policy.yaml": ["kind: IPPolicy"],
            "manifests/services/other.yaml": ["kind: TLSEdge"],
            "manifests/services/shop.yaml": ["kind: TLSEdge", "kind: ReservedDomain"],
        }
    (rule,) = propose(POLICY, RULE, shop, selects=lambda address, *_: address.kind == "IPPolicyRule").imported
    assert write.file_of(rule, BY_NAME, ".") == "ip-policy.yaml"


def test_the_rules_of_a_policy_are_grouped_with_the_only_service_that_uses_the_policy() -> None:
    def use(policy: str) -> dict[str, object]:
        return {"ip_restriction": {"ip_policies": [{"id": policy}]}}

    def rule(id: str, policy: str) -> Live:
        return live("IPPolicyRule", id, {"ip_policy": {"id": policy}, "cidr": "10.0.0.0/8"})

    edges = [live("TLSEdge", "e_1", {**use("ipp_1"), "hostports": ["a.x:443"]}), live("TLSEdge", "e_2", use("ipp_2"))]
    edges.append(live("TCPEdge", "e_3", use("ipp_2")))
    policies = [live("IPPolicy", id) for id in ("ipp_1", "ipp_2", "ipp_3")]
    rules = [rule(f"ipr_{n}", f"ipp_{n}") for n in (1, 2, 3)]
    domain = live("ReservedDomain", "rd_1", {"domain": "a.x"})
    # A route is part of its edge, and not of the policies that it uses.
    web, route = live("HTTPSEdge", "e_4"), live("HTTPSEdgeRoute", "r_1", use("ipp_2"), parent="e_4")
    index = LiveIndex.of(manifest(), snapshot(*edges, *policies, *rules, domain, web, route), KINDS)
    first, second, third = (edge.key for edge in edges)
    assert find_services(index) == {
        first: first,
        second: second,
        third: third,
        policies[0].key: first,
        rules[0].key: first,
        domain.key: first,
        web.key: web.key,
        route.key: web.key,
    }

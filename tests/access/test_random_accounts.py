"""Random accounts are valid on the platform, and requests on the borders of two states find what an edit changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.access import objects as o
from tests.access.accounts import (
    ADDRESSES,
    accounts,
    build,
    edits,
    random_account,
    random_blueprints,
    random_pair,
    seeds,
    simplify,
)
from tests.access.borders import Borders, border_addresses, border_requests
from tests.access.gateway.gateway import Gateway
from tests.access.gateway.messages import Request
from tests.access.gateway.open_rows import OPEN_ROWS
from tests.harness.platform import Sandbox
from tests.harness.tiers import examples, is_quick
from tests.kinds import pems

LISTS = {
    "ReservedDomain": "/reserved_domains",
    "ReservedAddress": "/reserved_addrs",
    "CertificateAuthority": "/certificate_authorities",
    "IPPolicy": "/ip_policies",
    "IPPolicyRule": "/ip_policy_rules",
    "IPRestriction": "/ip_restrictions",
    "TunnelGroupBackend": "/backends/tunnel_group",
    "HTTPResponseBackend": "/backends/http_response",
    "StaticBackend": "/backends/static",
    "FailoverBackend": "/backends/failover",
    "WeightedBackend": "/backends/weighted",
    "HTTPSEdge": "/edges/https",
    "HTTPSEdgeRoute": "/edges/https/{edge_id}/routes",
    "TLSEdge": "/edges/tls",
    "TCPEdge": "/edges/tcp",
    "CloudEndpoint": "/endpoints",
    "TunnelCredential": "/credentials",
}
"""The collection of each kind, in the order of references. The agent's own API has tunnels and endpoints of agents."""

READ_ONLY = {"id", "routes", "tunnels", "token", "subject_common_name", "edge_id"}
IDS = {"backend": "backend_id", "ip_policies": "ip_policy_ids", "certificate_authorities": "certificate_authority_ids"}
REQUEST_ROWS = {"mapped-address", "internal-and-account", "wildcard-itself", "email-domain-suffix", "reserved-paths"}
"""Open rows that a request to any account may touch."""


class Copy:
    """An account on the emulated platform, whose ids and tcp addresses are assigned by the platform."""

    def __init__(self, sandbox: Sandbox, account: o.Account) -> None:
        self.names: dict[str, str] = {}
        self.differences: list[str] = []
        for kind, path in LISTS.items():
            for found in account.get(kind, ()):
                self.create(sandbox, kind, path, found)

    def create(self, sandbox: Sandbox, kind: str, path: str, found: o.Object) -> None:
        expected = self.translate(found)
        body = {
            name: write_module(value) for name, value in expected.items() if name not in READ_ONLY and value is not None
        }
        if "ip_policies" in body:
            body["ip_policy_ids"] = [policy["id"] for policy in body.pop("ip_policies")]
        if "ip_policy" in body:
            body["ip_policy_id"] = body.pop("ip_policy")["id"]
        if kind == "ReservedAddress":
            del body["addr"]
        live = sandbox.post(path.format(edge_id=expected.get("edge_id")), body)
        self.names[found["id"]] = live["id"]
        if kind == "ReservedAddress":
            self.names[found["addr"]] = live["addr"]
        for name in expected.keys() - READ_ONLY - {"addr", "owner_id"}:
            if not _is_shown(expected[name], live[name]):
                self.differences.append(f"{kind}.{name}: {expected[name]!r} is shown as {live[name]!r}")

    def translate(self, value: Any) -> Any:
        """A value with the ids and addresses of the platform, in references, URLs and the text of policies."""
        if isinstance(value, dict):
            return {self.names.get(name, name): self.translate(inner) for name, inner in value.items() if name != "uri"}
        if isinstance(value, list):
            return [self.translate(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if value.startswith("PEM of "):
            return pems.certificate(value.removeprefix("PEM of "), ca=True)
        if value.startswith("{"):
            return json.dumps(self.translate(json.loads(value)))
        for address in ADDRESSES:
            value = value.replace(address, self.names.get(address, address))
        return self.names.get(value, value)


def write_module(value: Any) -> Any:
    """A module as it is written: with ids instead of references."""
    if not isinstance(value, dict) or "enabled" not in value:
        return value
    body = dict(value)
    for read, write in IDS.items():
        if read in body:
            refs = body.pop(read)
            body[write] = refs["id"] if isinstance(refs, dict) else [ref["id"] for ref in refs]
    if "provider" in body and isinstance(body["provider"], dict):
        body["provider"] = {name: lists for name, lists in body["provider"].items() if lists is not None}
    return body


def _is_shown(expected: Any, live: Any) -> bool:
    """Whether the platform shows an expected value, perhaps with more fields."""
    if isinstance(expected, dict):
        return isinstance(live, dict) and all(_is_shown(value, live.get(name)) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(live, list):
        return len(expected) == len(live) and all(map(_is_shown, expected, live))
    return expected == live or (not expected and not live)


def test_the_platform_accepts_random_accounts_and_shows_them_in_the_same_form(sandbox: Sandbox) -> None:
    for seed in range(5 if is_quick() else 30):
        sandbox.reset()
        assert Copy(sandbox, random_account(Random(seed))).differences == [], seed


def test_the_platform_accepts_random_edits(sandbox: Sandbox) -> None:
    for seed in range(5 if is_quick() else 30):
        sandbox.reset()
        assert Copy(sandbox, random_pair(Random(seed))[1]).differences == [], seed


@settings(max_examples=examples(300))
@given(st.data(), edits())
def test_open_rows_of_answers_are_listed(data: st.DataObject, pair: tuple[o.Account, o.Account]) -> None:
    request = data.draw(border_requests(*pair))
    for account in pair:
        assert Gateway(account).answer(request).open_rows <= OPEN_ROWS.keys()


@settings(max_examples=examples(300))
@given(st.data(), edits(exact=True))
def test_an_exact_account_has_no_unknown_answers(data: st.DataObject, pair: tuple[o.Account, o.Account]) -> None:
    request = data.draw(border_requests(*pair))
    for account in pair:
        answer = Gateway(account).answer(request)
        assert answer.outcome != "unknown"
        assert answer.open_outcome <= REQUEST_ROWS


@settings(max_examples=examples(300))
@given(st.data(), accounts(), seeds())
def test_the_order_of_objects_has_no_effect(data: st.DataObject, account: o.Account, r: Random) -> None:
    shuffled = {kind: r.sample(found, len(found)) for kind, found in account.items()}
    request = data.draw(border_requests(account, shuffled))
    first, second = Gateway(account).answer(request), Gateway(shuffled).answer(request)
    assert (first.outcome, first.open_outcome) == (second.outcome, second.open_outcome)


def _with_rule(account: o.Account, r: Random, decision: str) -> o.Account:
    """The account with one more network in an IP policy."""
    policy, cidr = r.choice(("ipp_0", "ipp_1", "ipp_2")), r.choice(("192.0.2.0/25", "0.0.0.0/0", "2001:db8::/32"))
    rules = [rule for rule in account["IPPolicyRule"] if (rule["cidr"], rule["ip_policy"]["id"]) != (cidr, policy)]
    same = [rule for rule in account["IPPolicyRule"] if rule not in rules]
    return account if same else account | {"IPPolicyRule": [*rules, o.ip_rule(policy, cidr, decision)]}


@settings(max_examples=examples(300))
@given(st.data(), accounts(exact=True), seeds())
def test_one_more_denied_network_admits_no_more_requests(data: st.DataObject, account: o.Account, r: Random) -> None:
    denies = _with_rule(account, r, "deny")
    request = data.draw(border_requests(account, denies))
    assert (Gateway(account).answer(request).outcome, Gateway(denies).answer(request).outcome) != ("refuse", "pass")


@settings(max_examples=examples(300))
@given(st.data(), accounts(exact=True), seeds())
def test_one_more_allowed_network_refuses_no_more_requests(data: st.DataObject, account: o.Account, r: Random) -> None:
    allows = _with_rule(account, r, "allow")
    request = data.draw(border_requests(account, allows))
    assert (Gateway(account).answer(request).outcome, Gateway(allows).answer(request).outcome) != ("pass", "refuse")


def test_borders_find_what_edits_change() -> None:
    """Of 100 edits, requests on the borders see many that open something, and many that close something."""
    changes: Counter[tuple[str, str]] = Counter()
    for seed in range(100):
        r = Random(seed)
        borders = Borders(*random_pair(r))
        requests = [borders.draw(r) for _ in range(20)]
        outcomes = [[state.answer(request).outcome for state in borders.states] for request in requests]
        changes.update({(before, after) for before, after in outcomes})
    assert changes["refuse", "pass"] >= 10
    assert changes["pass", "refuse"] >= 15
    assert changes["pass", "pass"] >= 50


def test_binds_and_planes_on_the_borders_have_both_outcomes() -> None:
    binds: Counter[str] = Counter()
    planes: Counter[str] = Counter()
    for seed in range(100):
        r = Random(seed)
        borders = Borders(*random_pair(r))
        binds.update(state.answer(borders.draw_bind(r)).outcome for state in borders.states)
        planes.update(state.answer(borders.draw_plane(r)).outcome for state in borders.states)
    assert min(binds["pass"], binds["refuse"], planes["pass"], planes["refuse"]) >= 10


def test_borders_of_a_network_are_its_ends_and_their_neighbors() -> None:
    assert border_addresses("192.0.2.0/24") == ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0")
    assert border_addresses("0.0.0.0/0") == ("0.0.0.0", "255.255.255.255")
    assert border_addresses("2001:db8::/32")[0] == "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"


def test_an_edit_is_simplified_to_the_objects_that_matter() -> None:
    sizes = []
    for seed in range(20):
        r = Random(seed)
        before, after = random_blueprints(r)
        borders = Borders(build(before), build(after))
        request = next((found for _ in range(50) if _is_opened(found := borders.draw(r), *borders.states)), None)
        if request is None:
            continue
        fails = _opens(request)
        simpler = simplify(before, after, fails)
        assert fails(*simpler)
        sizes.append([sum(map(len, account.values())) for account in (build(before), simpler[0])])
    full, simple = (sum(column) for column in zip(*sizes, strict=True))
    assert simple < 0.9 * full


def _is_opened(request: Request, before: Gateway, after: Gateway) -> bool:
    return before.answer(request).outcome == "refuse" and after.answer(request).outcome == "pass"


def _opens(request: Request) -> Callable[[o.Account, o.Account], bool]:
    return lambda before, after: _is_opened(request, Gateway(before), Gateway(after))

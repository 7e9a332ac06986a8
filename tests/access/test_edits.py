"""Single edits of an account, each with its verdict and witness."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from reconciler.access.compare import Difference, analyze, describe, identify
from reconciler.access.programs import Builder
from tests.access.live import compare_accounts, read_account
from tests.access.single_edits import Edit, every_edit
from tests.harness.golden import compare_golden

Account = dict[str, list[dict[str, Any]]]

RULE = {"id": "ipr_1", "ip_policy": {"id": "ipp_office"}, "cidr": "203.0.113.0/24", "action": "allow"}
RESTRICTED = {"enabled": True, "ip_policies": [{"id": "ipp_office"}]}
BACKEND = {"enabled": True, "backend": {"id": "bkdtg_web"}}
PREFIX = {"edge_id": "edghts_shop", "match_type": "path_prefix", "backend": BACKEND}


def make_shop() -> Account:
    """An edge with an open route `/` and a route `/admin` for the office."""
    root = {**PREFIX, "id": "edghtsrt_root", "match": "/"}
    admin = {**PREFIX, "id": "edghtsrt_admin", "match": "/admin", "ip_restriction": RESTRICTED}
    return deepcopy(
        {
            "HTTPSEdge": [{"id": "edghts_shop", "hostports": ["shop.example.com:443"]}],
            "HTTPSEdgeRoute": [root, admin],
            "IPPolicy": [{"id": "ipp_office"}],
            "IPPolicyRule": [RULE],
            "TunnelGroupBackend": [{"id": "bkdtg_web", "labels": {"app": "web"}}],
        }
    )


def rename_path(account: Account) -> None:
    account["HTTPSEdgeRoute"][1]["match"] = "/admins"


def delete_route(account: Account) -> None:
    del account["HTTPSEdgeRoute"][1]


def match_exactly(account: Account) -> None:
    account["HTTPSEdgeRoute"][1]["match_type"] = "exact_path"


def add_open_route(account: Account) -> None:
    account["HTTPSEdgeRoute"].append({**PREFIX, "id": "edghtsrt_new", "match": "/admin/x"})


def deny_all(account: Account) -> None:
    account["IPPolicyRule"][0]["action"] = "deny"


def split_network(account: Account) -> None:
    account["IPPolicyRule"][0]["cidr"] = "203.0.113.0/25"
    account["IPPolicyRule"].append({**RULE, "id": "ipr_2", "cidr": "203.0.113.128/25"})


def allow_part_again(account: Account) -> None:
    account["IPPolicyRule"].append({**RULE, "id": "ipr_2", "cidr": "203.0.113.8/29"})


def allow_world(account: Account) -> None:
    account["IPPolicyRule"].append({**RULE, "id": "ipr_2", "cidr": "0.0.0.0/0"})


def add_tls_edge(account: Account) -> None:
    account["TLSEdge"] = [{"id": "edgtls_1", "hostports": ["db.example.com:443"], "backend": BACKEND}]


def add_cloud_endpoint(account: Account) -> None:
    policy = '{"on_http_request": [{"actions": [{"type": "custom-response"}]}]}'
    account["CloudEndpoint"] = [
        {"id": "ep_1", "url": "https://new.example.com", "bindings": ["public"], "traffic_policy": policy}
    ]


def add_credential(account: Account) -> None:
    account["TunnelCredential"] = [{"id": "cr_1", "acl": []}]


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (
            rename_path,
            [("widens", "https://shop.example.com/admin…", "`GET https://shop.example.com/admin/x` from 192.0.2.1")],
        ),
        (
            delete_route,
            [("widens", "https://shop.example.com/admin…", "`GET https://shop.example.com/admin/x` from 192.0.2.1")],
        ),
        (
            match_exactly,
            [("widens", "https://shop.example.com/admin…", "`GET https://shop.example.com/admin/x` from 192.0.2.1")],
        ),
        (
            add_open_route,
            [
                (
                    "widens",
                    "https://shop.example.com/admin/x…",
                    "`GET https://shop.example.com/admin/x/x` from 192.0.2.1",
                )
            ],
        ),
        (
            deny_all,
            [
                (
                    "locks_out",
                    "https://shop.example.com/admin…",
                    "`GET https://shop.example.com/admin/x` from 203.0.113.1",
                )
            ],
        ),
        (split_network, []),
        (allow_part_again, []),
        (
            allow_world,
            [("widens", "https://shop.example.com/admin…", "`GET https://shop.example.com/admin/x` from 192.0.2.1")],
        ),
        (add_tls_edge, [("exposes", "tls://db.example.com", "`tls://db.example.com` from 192.0.2.1")]),
        (add_cloud_endpoint, [("exposes", "https://new.example.com", "`GET https://new.example.com/` from 192.0.2.1")]),
        (
            add_credential,
            [("exposes", "what cr_1 may open", "an agent may open any endpoint, address or label")],
        ),
    ],
)
def test_an_edit_has_its_verdict_and_a_witness(
    edit: Callable[[Account], None], changes: list[tuple[str, str, str]]
) -> None:
    after = make_shop()
    edit(after)
    found = compare_accounts(make_shop(), after)
    assert [(str(change.verdict), str(change.region), change.witness) for change in found] == changes
    assert all(change.is_certain for change in found)


def make_endpoint(*actions: dict[str, Any]) -> Account:
    policy = {"on_http_request": [{"actions": [action]} for action in actions]}
    url = {"url": "https://a.example.com", "bindings": ["public"]}
    return {"CloudEndpoint": [{"id": "ep_1", **url, "traffic_policy": json.dumps(policy)}]}


def act(kind: str, **config: Any) -> dict[str, Any]:
    return {"type": kind, "config": config}


ANSWER = act("custom-response")
DENY, REDIRECT = act("deny"), act("redirect", to="https://b.example.com")
PASSWORD = act("basic-auth", credentials=["ada:enigma-1"])
SIGNED = act("verify-webhook", provider="github", secret="s")
SIGN_IN = act("openid-connect", issuer_url="https://id.example.com", client_id="a")
SAML = act("saml", idp_metadata="<a/>")


@pytest.mark.parametrize(
    ("before", "after", "verdict", "is_certain"),
    [
        pytest.param((PASSWORD,), (act("basic-auth", credentials=["ada:enigma-2"]),), "widens", True, id="password"),
        pytest.param((SIGNED,), (act("verify-webhook", provider="github", secret="t"),), "widens", True, id="secret"),
        pytest.param((SAML,), (act("saml", idp_metadata="<b/>"),), "widens", True, id="identity provider"),
        pytest.param(
            (PASSWORD,),
            (act("add-headers", headers={"Authorization": "Basic YTpi"}), PASSWORD),
            "widens",
            False,
            id="password written into each request",
        ),
        pytest.param(
            (SIGN_IN,),
            (act("add-headers", headers={"cookie": "session=1"}), SIGN_IN),
            "widens",
            False,
            id="session written into each request",
        ),
        pytest.param(
            (SIGNED,),
            (act("add-headers", headers={"x-signature": "1"}), SIGNED),
            "widens",
            False,
            id="signature written",
        ),
        pytest.param((PASSWORD,), (act("add-headers", headers={"x-team": "a"}), PASSWORD), "", True, id="other header"),
        pytest.param(
            (PASSWORD,), (act("restrict-ips", allow=["192.0.2.0/24"]), PASSWORD), "narrows", True, id="network"
        ),
        pytest.param(
            (act("restrict-ips", allow=["192.0.2.0/24"]),),
            (act("restrict-ips", allow=["192.0.2.0/24"]), act("restrict-ips", allow=["198.51.100.0/24"])),
            "locks_out",
            True,
            id="networks that exclude each other",
        ),
        pytest.param((DENY,), (REDIRECT, DENY), "widens", False, id="redirect before a deny"),
        pytest.param((DENY,), (REDIRECT,), "widens", True, id="redirect and an answer"),
        pytest.param(
            (act("restrict-ips", allow=["192.0.2.0/24"]),),
            (act("restrict-ips", allow=["192.0.2.0/24", "::ffff:192.0.2.0/120"]),),
            "widens",
            False,
            id="IPv4-mapped addresses",
        ),
        pytest.param(
            (act("restrict-ips", allow=["192.0.2.0/24"]),),
            (act("restrict-ips", allow=["192.0.2.0/24", "::/0"]),),
            "widens",
            True,
            id="IPv4-mapped addresses among others",
        ),
        pytest.param(
            (act("restrict-ips", allow=["198.51.100.0/24"]),),
            (act("restrict-ips", allow=["192.0.2.0/24", "::ffff:192.0.2.0/120"]),),
            "widens",
            True,
            id="IPv4-mapped addresses with their IPv4 addresses",
        ),
    ],
)
def test_an_edit_of_a_traffic_policy_has_its_verdict(
    before: tuple[Any, ...], after: tuple[Any, ...], verdict: str, is_certain: bool
) -> None:
    found = compare_accounts(make_endpoint(*before, ANSWER), make_endpoint(*after, ANSWER))
    assert [(str(change.verdict), change.is_certain) for change in found] == (
        [(verdict, is_certain)] if verdict else []
    )


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (["a"], ["a", "b"], "widens"),
        (["a", "b"], ["a"], "narrows"),
        (["a", "b"], ["a", "b", "c"], "widens"),
        (["a", "b"], ["b", "a"], ""),
    ],
)
def test_a_rule_applies_only_where_each_of_its_expressions_is_true(
    before: list[str], after: list[str], verdict: str
) -> None:
    def make(expressions: list[str]) -> Account:
        account = make_endpoint(DENY, ANSWER)
        policy = json.loads(account["CloudEndpoint"][0]["traffic_policy"])
        policy["on_http_request"][0]["expressions"] = [f"'{name}' in req.headers" for name in expressions]
        account["CloudEndpoint"][0]["traffic_policy"] = json.dumps(policy)
        return account

    found = compare_accounts(make(before), make(after))
    assert [str(change.verdict) for change in found] == ([verdict] if verdict else [])


def test_a_header_written_by_a_module_may_satisfy_a_gate_of_the_policy() -> None:
    policy = json.dumps({"on_http_request": [{"actions": [PASSWORD]}]})
    before = make_shop()
    before["HTTPSEdgeRoute"][0]["traffic_policy"] = {"enabled": True, "value": policy}
    after = deepcopy(before)
    after["HTTPSEdgeRoute"][0]["request_headers"] = {"enabled": True, "add": {"authorization": "Basic YTpi"}}
    assert [(str(change.verdict), change.is_certain) for change in compare_accounts(before, after)] == [
        ("widens", False)
    ]


def test_a_header_written_before_forwarding_may_satisfy_a_gate_of_the_target() -> None:
    target = {"id": "ep_2", "url": "https://b.internal", "bindings": ["internal"]}
    target["traffic_policy"] = json.dumps({"on_http_request": [{"actions": [PASSWORD]}, {"actions": [ANSWER]}]})
    forward = act("forward-internal", url="https://b.internal")
    before, after = make_endpoint(forward), make_endpoint(act("add-headers", headers={"authorization": "x"}), forward)
    for account in (before, after):
        account["CloudEndpoint"].append(target)
    assert [(str(change.verdict), change.is_certain) for change in compare_accounts(before, after)] == [
        ("widens", False)
    ]


def test_an_exact_route_serves_its_path_only() -> None:
    before = make_shop()
    match_exactly(before)
    after = deepcopy(before)
    after["HTTPSEdgeRoute"][1]["ip_restriction"] = None
    (opened,) = compare_accounts(before, after)
    assert (str(opened.verdict), str(opened.region)) == ("widens", "https://shop.example.com/admin")


def test_a_wildcard_that_opens_opens_the_host_of_an_agent_that_may_be_offline() -> None:
    agent = {"name": "a", "url": "https://a.example.com", "bindings": ["public"]}
    agent["traffic_policy"] = json.dumps({"on_http_request": [{"actions": [DENY]}]})
    sides = []
    for actions in ((PASSWORD, ANSWER), (ANSWER,)):
        account = make_endpoint(*actions)
        account["CloudEndpoint"][0]["url"] = "https://*.example.com"
        sides.append(account | {"AgentEndpoint": [agent]})
    opened = {(str(change.region), str(change.verdict)) for change in compare_accounts(*sides)}
    assert opened == {("https://*.example.com", "widens"), ("https://a.example.com", "widens")}


def test_a_tunnel_group_without_labels_reaches_what_is_not_documented() -> None:
    before, after = make_shop(), make_shop()
    after["TunnelGroupBackend"][0]["labels"] = {}
    found = compare_accounts(before, after)
    assert [(change.witness[:5], str(change.verdict), change.is_certain) for change in found] == [
        ("`GET ", "narrows", False)
    ] * len(found)
    assert {change.depends_on for change in found} == {("a tunnel group without labels reaches a tunnel",)}


def test_an_https_edge_below_a_wildcard_of_http_may_take_its_requests() -> None:
    """The edge redirects plain http. Whether it does so beside the wildcard of an endpoint is not documented."""
    before = make_shop()
    before["HTTPSEdge"][0]["hostports"] = ["other.example.org:443"]
    wildcard = {"id": "ep_1", "url": "http://*.example.com", "bindings": ["public"]}
    before["CloudEndpoint"] = [wildcard | {"traffic_policy": json.dumps({"on_http_request": [{"actions": [ANSWER]}]})}]
    after = {**deepcopy(before), "HTTPSEdge": make_shop()["HTTPSEdge"]}
    changes = {str(change.region): change for change in compare_accounts(before, after)}
    narrowed = changes["http://shop.example.com"]
    assert (str(narrowed.verdict), narrowed.is_certain) == ("narrows", False)
    assert narrowed.depends_on == ("an edge and an endpoint share a host by the most specific name",)


def test_a_host_and_the_wildcard_that_may_serve_it_are_compared_at_the_same_path() -> None:
    """Whether `*.shop.example.com` serves `shop.example.com` itself is not documented."""
    before = make_shop()
    before["HTTPSEdge"][0]["hostports"] = ["*.shop.example.com:443"]
    open_admin = {**PREFIX, "id": "edghtsrt_admin", "match": "/admin"}
    closed = {"edge_id": "edghts_shop", "id": "edghtsrt_x", "match_type": "path_prefix", "match": "/admin/x"}
    before["HTTPSEdgeRoute"] = [open_admin, closed]
    after = deepcopy(before)
    after["HTTPSEdge"][0]["hostports"] = ["shop.example.com:443"]
    found = {str(change.region): change for change in compare_accounts(before, after)}
    assert not found["https://shop.example.com/admin…"].is_certain


def test_the_paths_of_a_wildcard_that_may_serve_its_own_host_are_compared_one_by_one() -> None:
    before = make_shop()
    before["HTTPSEdgeRoute"] = [{**PREFIX, "id": "edghtsrt_root", "match": "/"}]
    before["HTTPSEdge"].append({"id": "edghts_api", "hostports": ["*.shop.example.com:443"]})
    before["HTTPSEdgeRoute"].append({**PREFIX, "id": "edghtsrt_api", "edge_id": "edghts_api", "match": "/api"})
    after = deepcopy(before)
    after["HTTPSEdge"][0] |= {
        "hostports": ["*.example.com:443"],
        "mutual_tls": {"enabled": True, "certificate_authorities": [{"id": "ca_1"}]},
    }
    after["CertificateAuthority"] = [{"id": "ca_1", "ca_pem": "PEM"}]
    found = {str(change.region): change for change in compare_accounts(before, after)}
    assert not found["https://shop.example.com/api…"].is_certain
    assert found["https://shop.example.com/…"].is_certain


def test_an_https_edge_has_no_way_in_by_plain_http() -> None:
    assert {str(entry.region.door.scheme) for entry in analyze(read_account(make_shop()))} & {"http"} == set()


def test_another_scheme_at_the_same_host_and_port_is_no_new_way_in() -> None:
    """An edge that ends TLS and its gates gives way to one that does not."""
    gated = {"id": "edgtls_1", "hostports": ["db.example.com:443"], "backend": BACKEND}
    before = make_shop()
    before["CloudEndpoint"] = [{"id": "ep_1", "url": "https://db.example.com", "bindings": ["public"]}]
    before["CloudEndpoint"][0]["traffic_policy"] = json.dumps(
        {"on_http_request": [{"actions": [PASSWORD]}, {"actions": [ANSWER]}]}
    )
    after = {**deepcopy(before), "CloudEndpoint": [], "TLSEdge": [gated]}
    verdicts = {str(change.region): str(change.verdict) for change in compare_accounts(before, after)}
    assert verdicts == {"tls://db.example.com": "widens", "https://db.example.com": "closes"}


def test_changes_that_read_alike_have_digests_of_their_own() -> None:
    """Words name four networks; an approval is bound to all of them."""

    def widen(last: str) -> tuple[str, ...]:
        after = make_shop()
        for number, cidr in enumerate(("10.0.0.0/24", "10.2.0.0/24", "10.4.0.0/24", "10.6.0.0/24", last)):
            after["IPPolicyRule"].append({**RULE, "id": f"ipr_{number + 2}", "cidr": cidr})
        builder = Builder()
        return tuple(identify(change, builder) for change in compare_accounts(make_shop(), after, builder=builder))

    assert widen("10.8.0.0/24") == widen("10.8.0.0/24") != widen("10.9.0.0/24")


def test_a_digest_depends_on_a_secret_and_does_not_show_it() -> None:
    def change(secret: str) -> str:
        before, after = make_endpoint(PASSWORD, ANSWER), make_endpoint(act("basic-auth", credentials=[secret]), ANSWER)
        builder = Builder()
        (found,) = compare_accounts(before, after, builder=builder)
        assert secret not in repr((found.after, found.witness))
        return identify(found, builder)

    assert change("ada:enigma-2") == change("ada:enigma-2") != change("ada:enigma-3")


def test_an_account_without_edits_has_no_changes() -> None:
    assert compare_accounts(make_shop(), make_shop()) == ()


@pytest.mark.parametrize(
    ("expressions", "words"), [([], "no one"), (["req.url.path == '/a'"], "everyone, except under conditions")]
)
def test_a_policy_that_denies_under_conditions_admits_everyone_else(expressions: list[str], words: str) -> None:
    deny = {"expressions": expressions, "actions": [{"type": "deny"}]}
    answer = {"actions": [{"type": "custom-response"}]}
    endpoint = {"id": "ep_1", "url": "https://new.example.com", "bindings": ["public"]}
    before, after = (
        {"CloudEndpoint": [{**endpoint, "traffic_policy": json.dumps({"on_http_request": rules})}]}
        for rules in ([answer], [deny, answer])
    )
    (change,) = compare_accounts(before, after)
    assert describe(change.after) == words


# --- each way in × gate × direction -----------------------------------------------------------------------------------

TABLE = Path(__file__).with_name("single_edits.txt")


def test_each_single_edit_has_the_verdict_of_the_table() -> None:
    compare_golden(TABLE, "\n".join(render_table([*every_edit()])) + "\n")


def render_table(found: list[Edit]) -> Iterator[str]:
    """A block for each gate, with the ways in at which its edits have these verdicts; a line for each edit."""
    blocks: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for (way, gate), several in groupby(found, key=lambda edit: edit.name[:2]):
        lines = tuple(f"  {edit.name[2]:<34}  {render_changes(edit)}".rstrip() for edit in several)
        blocks.setdefault(gate, {}).setdefault(lines, []).append(way)
    yield "# What each edit of one gate changes, at the entry point that has the gate."
    for gate, ways_of in blocks.items():
        for lines, ways in ways_of.items():
            yield from ("", f"{gate}: {', '.join(ways)}", *lines)


def render_changes(edit: Edit) -> str:
    changes = compare_accounts(edit.before, edit.after)
    return "; ".join(map(render_change, changes)) or "no change"


def render_change(change: Difference) -> str:
    """The verdict with its witness; the scheme, host and path are those of the way in."""
    method = "OPTIONS " if "`OPTIONS " in change.witness else ""
    witness = re.sub(r"^(`.*`|the management API|the dashboard|sessions of agents) ", method, change.witness)
    doubts = "" if change.is_certain else f" (unknown: {', '.join(change.depends_on)})"
    return f"{change.verdict!s:<9}  {witness}{doubts}"

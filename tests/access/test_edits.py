"""Single edits of an account, each with its verdict and witness."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from reconciler.access.compare import describe
from tests.access.live import compare_accounts

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

"""The inventory: which ways in an account has, and which of them are public."""

from __future__ import annotations

import pytest

from reconciler.access.account import Account
from reconciler.access.inventory import conceal_others, list_entries
from reconciler.model.access_entry import AccessEntry
from tests.access import objects as o
from tests.access.live import read_resources

URL = "https://shop.example.com"


def list_shop(*rules: o.Object) -> AccessEntry:
    """The entry point of an endpoint whose policy has these rules, and answers."""
    answers = o.rule(o.action("custom-response", status_code=200, body="hello"))
    account = Account(read_resources({"CloudEndpoint": [o.cloud(URL, o.on_request(*rules, answers))]}))
    return next(entry for entry in list_entries(account) if entry.host == "shop.example.com")


def admit(*networks: str) -> o.Object:
    return o.rule(o.action("restrict-ips", enforce=True, allow=[*networks]))


def test_an_endpoint_that_answers_everyone_is_public() -> None:
    entry = list_shop()
    assert (entry.entry_point, entry.admits, entry.public) == (URL, "everyone", True)
    assert (entry.scheme, entry.port, entry.binding, entry.unknown) == ("https", 443, "public", ())


@pytest.mark.parametrize(
    ("networks", "public"),
    [
        (("0.0.0.0/0",), True),
        (("0.0.0.0/1",), True),
        (("128.0.0.0/2", "0.0.0.0/2"), True),
        (("::/0",), True),
        (("0.0.0.0/2",), False),
        (("203.0.113.0/24",), False),
    ],
)
def test_an_endpoint_is_public_if_half_of_all_addresses_are_admitted(networks: tuple[str, ...], public: bool) -> None:
    assert list_shop(admit(*networks)).public is public


@pytest.mark.parametrize(
    "gate",
    [
        o.action("oauth", provider="google"),
        o.action("basic-auth", credentials=["a:password"]),
        o.action("verify-webhook", provider="github", secret="s"),
        o.action("deny", status_code=403),
    ],
)
def test_an_endpoint_behind_a_gate_is_not_public(gate: o.Object) -> None:
    assert not list_shop(o.rule(gate)).public


def test_an_endpoint_that_refuses_some_requests_is_public() -> None:
    assert list_shop(o.rule(o.action("deny", status_code=403), when=["req.method == 'PUT'"])).public


def test_an_endpoint_behind_a_gate_that_does_not_enforce_is_public() -> None:
    assert list_shop(o.rule(o.action("basic-auth", credentials=["a:password"], enforce=False))).public


def test_each_region_of_paths_is_one_entry_point() -> None:
    routes = [
        o.route("edghts_1", "/", backend=o.backend_module("bkdtg_1")),
        o.route("edghts_1", "/admin", backend=o.backend_module("bkdtg_1"), ip_restriction=o.ip_module("ipp_1")),
        o.route("edghts_1", "/health", "exact_path", backend=o.backend_module("bkdtg_1")),
    ]
    objects = {
        "HTTPSEdge": [o.https_edge("edghts_1", "shop.example.com")],
        "HTTPSEdgeRoute": routes,
        "TunnelGroupBackend": [o.tunnel_group("bkdtg_1", app="web")],
        "IPPolicy": [o.ip_policy("ipp_1")],
        "IPPolicyRule": [o.ip_rule("ipp_1", "203.0.113.0/24")],
    }
    entries = [entry for entry in list_entries(Account(read_resources(objects))) if entry.host == "shop.example.com"]
    assert [(entry.entry_point, entry.admits) for entry in entries] == [
        (f"{URL}/…", "everyone"),
        (f"{URL}/admin…", "203.0.113.0/24"),
        (f"{URL}/health…", "everyone"),
    ]


def name_entry(host: str, path: str, stack: str = "") -> AccessEntry:
    words = "203.0.113.0/24", True, ("not read: IPPolicy",), (f"IPPolicy/{host}",)
    return AccessEntry(f"https://{host}{path}", "https", host, 443, path, False, "public", *words, stack)


def test_ways_in_of_other_stacks_are_listed_by_host_without_their_gates() -> None:
    own = name_entry("shop.example.com", "/admin")
    others = [name_entry("web.example.com", path, "web") for path in ("/", "/admin")]
    kept, *hosts = conceal_others([own, *others])
    assert kept is own
    assert [(entry.entry_point, entry.admits, entry.stack) for entry in hosts] == [
        ("https://web.example.com", "gates of stack web", "web")
    ]
    assert (hosts[0].public, hosts[0].unknown, hosts[0].resources, hosts[0].path) == (False, (), (), "")

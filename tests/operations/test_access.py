"""`Workspace.access`: every way into an account, live or declared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reconciler import Status
from reconciler.access.account import Account
from reconciler.access.inventory import list_entries
from reconciler.operations.access import list_page_entries
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, write_project

ANSWERS = {"on_http_request": [{"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}]}
SHOP = [
    {"kind": "ReservedDomain", "name": "shop", "spec": {"domain": "shop.example.com"}},
    {"kind": "CloudEndpoint", "name": "shop", "spec": {"url": "https://shop.example.com", "traffic_policy": ANSWERS}},
]


def seed_endpoint(type: str, url: str, **more: Any) -> dict[str, Any]:
    body = {"id": f"ep_{len(url)}", "type": type, "url": url, "public_url": url, "bindings": ["public"], **more}
    return {"collection": "/endpoints", "object": body}


def list_hosts(account: Account) -> list[tuple[str, str, str, str]]:
    entries = (entry for entry in list_entries(account) if entry.binding not in ("account", "credential"))
    return [(entry.entry_point, entry.admits, entry.stack, entry.origin) for entry in entries]


async def test_declared_access_needs_no_request(sandbox: Sandbox, tmp_path: Path) -> None:
    found = await open_on(sandbox, write_project(tmp_path, *SHOP)).access(declared=True)
    assert list_hosts(found.account) == [("https://shop.example.com", "everyone", "", "")]
    assert [entry.entry_point for entry in found.entries if entry.resources] == ["https://shop.example.com"]
    assert sandbox.log() == []


async def test_live_access_names_the_managers_of_the_ways_in(tmp_path: Path) -> None:
    by_hand = {"url": "https://by-hand.example.com", "type": "cloud", "traffic_policy": json.dumps(ANSWERS)}
    seeds = [
        {"path": "/reserved_domains", "body": {"domain": "by-hand.example.com"}},
        {"path": "/endpoints", "body": by_hand},
        seed_endpoint("ephemeral", "https://laptop.example.com"),
        seed_endpoint("edge", "https://edge.example.com:8443"),
    ]
    with Sandbox(seed=seeds) as sandbox:
        other = open_on(sandbox, _write_other_stack(tmp_path / "web"))
        assert (await other.apply()).status is Status.APPLIED
        ours = open_on(sandbox, write_project(tmp_path / "ours", *SHOP))
        assert (await ours.apply()).status is Status.APPLIED
        found = await ours.access()
        assert list_hosts(found.account) == [
            ("https://by-hand.example.com", "everyone", "", "unmanaged"),
            ("https://laptop.example.com", "everyone", "", "ephemeral"),
            ("https://shop.example.com", "everyone", "", ""),
            ("https://web.example.com", "everyone", "web", ""),
        ]
        assert found.incomplete == {}
        listed = list_page_entries(ours, await ours.take_snapshot(), is_planned=True)
        (web,) = (entry for entry in listed if entry.host == "web.example.com")
        assert (web.entry_point, web.admits, web.resources) == ("https://web.example.com", "gates of stack web", ())


async def test_the_inventory_does_not_depend_on_the_order_of_lists(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, *SHOP))
    await workspace.apply()
    found = await workspace.access()
    resources = [*found.account.resources.values()]
    assert [*list_entries(Account(resources[::-1]))] == [*list_entries(Account(resources))]


async def test_access_is_unknown_while_a_list_cannot_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, *SHOP))
    await workspace.apply()
    sandbox.fault("GET /ip_restrictions", times=9, then="status", status=403)
    found = await workspace.access()
    assert [*found.incomplete] == ["IPRestriction"]
    shop = next(entry for entry in found.entries if entry.host == "shop.example.com")
    assert (shop.public, shop.unknown) == (True, ("not read: IPRestriction",))


def _write_other_stack(root: Path) -> Path:
    documents = json.loads(json.dumps(SHOP).replace("shop", "web"))
    write_project(root, *documents)
    settings = root / "reconciler.yaml"
    settings.write_text(settings.read_text().replace("stack: prod", "stack: web"))
    return root

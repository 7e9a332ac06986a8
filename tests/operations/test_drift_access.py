"""What drift opens: the entry points that the platform's changes open or close, and those that Git changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler import Selection
from reconciler.model.access_change import Verdict
from reconciler.model.history import DriftCheck, Opening
from reconciler.operations import drift
from reconciler.operations.history import read_past
from reconciler.operations.results import DriftResult
from reconciler.planning import access
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on, write_project

Document = dict[str, Any]
ANSWER = {"on_http_request": [{"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}]}


def declare(kind: str, name: str, **spec: Any) -> Document:
    return {"kind": kind, "name": name, "spec": spec}


def ref(address: str) -> dict[str, str]:
    return {"ref": address}


def allow(name: str, cidr: str, action: str = "allow", policy: str = "office") -> Document:
    return declare("IPPolicyRule", name, ip_policy_id=ref(f"IPPolicy/{policy}"), cidr=cidr, action=action)


def route(name: str, path: str, **modules: Any) -> Document:
    where = {"edge_id": ref("HTTPSEdge/ledger"), "match_type": "path_prefix", "match": path}
    backend = {"backend_id": ref("TunnelGroupBackend/web")}
    return declare("HTTPSEdgeRoute", name, **where, backend=backend, **modules)


RESTRICTED = {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}}
LEDGER = [
    declare("ReservedDomain", "ledger", domain="ledger.example.com"),
    declare("IPPolicy", "office", description="Office"),
    allow("office", "203.0.113.0/24"),
    declare("TunnelGroupBackend", "web", labels={"app": "web"}),
    declare("HTTPSEdge", "ledger", hostports=["ledger.example.com:443"]),
    route("all", "/", **RESTRICTED),
]


class Night:
    """A project that is applied, and what happens to its account until the next drift check."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self.root, self.sandbox = root, sandbox

    async def apply(self, documents: Sequence[Document]) -> None:
        write_project(self.root, *documents)
        result = await open_on(self.sandbox, self.root).apply()
        assert not result.problems

    def declare(self, *documents: Document) -> None:
        write_project(self.root, *documents)

    async def check(self, *, selection: Selection | None = None, ignore: Sequence[str] = ()) -> DriftResult:
        return await open_on(self.sandbox, self.root).select(selection).drift(ignore=ignore)

    def id_of(self, path: str, key: str, **fields: Any) -> str:
        return str(next(item["id"] for item in self.sandbox.get(path)[key] if fields.items() <= item.items()))

    def plant(self, cidr: str = "0.0.0.0/0", action: str = "allow") -> None:
        policy = self.id_of("/ip_policies", "ip_policies")
        self.sandbox.post("/ip_policy_rules", {"ip_policy_id": policy, "cidr": cidr, "action": action})

    def delete_rule(self, cidr: str) -> None:
        self.sandbox.delete(f"/ip_policy_rules/{self.id_of('/ip_policy_rules', 'ip_policy_rules', cidr=cidr)}")

    def change_route(self, match: str = "/", **fields: Any) -> None:
        edge = self.id_of("/edges/https", "https_edges")
        (found,) = [item for item in self.sandbox.get(f"/edges/https/{edge}")["routes"] if item["match"] == match]
        self.sandbox.patch(f"/edges/https/{edge}/routes/{found['id']}", fields)

    def delete_route(self, match: str) -> None:
        edge = self.id_of("/edges/https", "https_edges")
        (found,) = [item for item in self.sandbox.get(f"/edges/https/{edge}")["routes"] if item["match"] == match]
        self.sandbox.delete(f"/edges/https/{edge}/routes/{found['id']}")


@pytest.fixture
async def night(tmp_path: Path, sandbox: Sandbox) -> Night:
    found = Night(tmp_path, sandbox)
    await found.apply(LEDGER)
    return found


def show(found: DriftResult) -> list[str]:
    return [f"{entry.verdict} {entry.entry_point}: {entry.before} → {entry.after}" for entry in found.access]


ENTRY = "https://ledger.example.com/…"


async def test_an_added_rule_is_named_with_what_it_opens(night: Night) -> None:
    night.plant()
    (entry,) = (await night.check()).access
    assert (entry.verdict, entry.before, entry.after) == (Verdict.WIDENS, "203.0.113.0/24", "0.0.0.0/0")
    assert (entry.entry_point, entry.is_certain, entry.public) == (ENTRY, True, True)
    assert entry.causes[0].startswith("IPPolicyRule/ipr")
    assert entry.witness.startswith("`GET https://ledger.example.com/")


async def test_a_change_that_is_open_in_git_only_opens_nothing_on_the_platform(night: Night) -> None:
    night.declare(*LEDGER[:-1], route("all", "/"), declare("ReservedDomain", "new", domain="new.example.com"))
    found = await night.check()
    assert (found.has_pending, found.has_drift, show(found)) == (True, False, [])


async def test_a_pending_change_of_a_drifted_resource_does_not_count(night: Night) -> None:
    night.declare(*LEDGER[:-1], route("all", "/"))  # opens it, once it is applied
    night.change_route(compression={"enabled": True})
    found = await night.check()
    assert (found.has_drift, show(found)) == (True, [])


async def test_the_parts_of_one_module_that_git_changed_are_not_repaired(night: Night) -> None:
    other = [declare("IPPolicy", "home"), allow("home", "198.51.100.0/24", policy="home")]
    await night.apply([*LEDGER, *other])
    night.declare(*LEDGER[:-1], *other, route("all", "/", ip_restriction={"ip_policy_ids": [ref("IPPolicy/home")]}))
    policy = night.id_of("/ip_policies", "ip_policies", description="Office")
    night.change_route(ip_restriction={"enabled": False, "ip_policy_ids": [policy]})
    assert show(await night.check()) == [f"widens {ENTRY}: 203.0.113.0/24 → everyone"]


async def test_a_field_that_git_and_the_platform_changed_leaves_it_unknown_which_of_them_opened(night: Night) -> None:
    other = [declare("IPPolicy", "home"), allow("home", "198.51.100.0/24", policy="home")]
    await night.apply([*LEDGER, *other])
    night.declare(*LEDGER[:-1], *other, route("all", "/", ip_restriction={"ip_policy_ids": [ref("IPPolicy/home")]}))
    home, office = (night.id_of("/ip_policies", "ip_policies", description=text) for text in ("", "Office"))
    night.change_route(ip_restriction={"enabled": True, "ip_policy_ids": [home, office]})
    (entry,) = (await night.check()).access
    assert (entry.verdict, entry.is_certain) == (Verdict.WIDENS, False)
    assert entry.depends_on == ("whether the platform or Git changed HTTPSEdgeRoute/all",)


async def test_a_deleted_deny_rule_and_a_deleted_route_open_what_they_refused(night: Night) -> None:
    await night.apply([*LEDGER[:-1], allow("guest", "203.0.113.128/25", "deny"), route("all", "/")])
    assert show(await night.check()) == []
    await night.apply([*LEDGER[:-1], allow("guest", "203.0.113.128/25", "deny"), route("all", "/", **RESTRICTED)])
    night.delete_rule("203.0.113.128/25")
    (entry,) = (await night.check()).access
    assert (entry.verdict, entry.after, entry.causes) == (Verdict.WIDENS, "203.0.113.0/24", ("IPPolicyRule/guest",))
    await night.apply([*LEDGER[:-1], route("all", "/"), route("admin", "/admin", **RESTRICTED)])
    night.delete_route("/admin")
    (entry,) = (await night.check()).access
    assert (entry.entry_point, entry.causes) == (
        "https://ledger.example.com/admin…",
        ("HTTPSEdgeRoute/admin",),
    )
    assert (entry.verdict, entry.before, entry.after) == (Verdict.WIDENS, "203.0.113.0/24", "everyone")


async def test_the_last_allowed_network_that_is_deleted_locks_everyone_out(night: Night) -> None:
    night.delete_rule("203.0.113.0/24")
    (entry,) = (await night.check()).access
    assert (entry.verdict, entry.before) == (Verdict.LOCKS_OUT, "203.0.113.0/24")


async def test_a_restriction_of_the_account_that_is_switched_off_opens_the_dashboard(night: Night) -> None:
    limited = {"type": "dashboard", "ip_policy_ids": [ref("IPPolicy/office")], "enforced": True}
    await night.apply([*LEDGER, declare("IPRestriction", "dashboard", **limited)])
    restriction = night.id_of("/ip_restrictions", "ip_restrictions")
    night.sandbox.patch(f"/ip_restrictions/{restriction}", {"enforced": False})
    assert show(await night.check()) == ["widens the dashboard: 203.0.113.0/24 → everyone"]


async def test_a_way_in_that_no_stack_manages_is_no_drift(night: Night) -> None:
    night.sandbox.post("/reserved_domains", {"domain": "stray.example.com"})
    night.sandbox.post("/endpoints", {"url": "https://stray.example.com", "traffic_policy": json.dumps(ANSWER)})
    found = await night.check()
    assert (found.has_drift, show(found)) == (False, [])


async def test_known_drift_opens_nothing_and_what_remains_is_compared_with_it(night: Night) -> None:
    night.plant()
    found = await night.check(ignore=["IPPolicyRule/*"])
    assert (found.has_drift, show(found)) == (False, [])
    night.change_route(ip_restriction={"enabled": False, "ip_policy_ids": []})
    found = await night.check(ignore=["IPPolicyRule/*"])
    assert show(found) == [f"widens {ENTRY}: 0.0.0.0/0 → everyone"]
    found = await night.check(ignore=["IPPolicyRule/*", "HTTPSEdgeRoute/all.ip_restriction"])
    assert show(found) == []


async def test_a_check_of_some_resources_reports_what_these_open(night: Night) -> None:
    night.plant()
    assert show(await night.check(selection=Selection(targets=("HTTPSEdgeRoute/*",)))) == []
    assert len(show(await night.check(selection=Selection(targets=("IPPolicy/*",))))) == 1


async def test_rules_that_cannot_be_read_are_not_reported_as_closed(night: Night) -> None:
    night.plant()
    night.sandbox.fault("GET /ip_policy_rules", then="status", times=0, status=418)
    found = await night.check()
    assert show(found) == []
    assert found.plan.errors
    assert "additions-unknown" in {problem.code for problem in found.plan.problems}


async def test_a_resource_that_git_removed_and_the_platform_changed_opens_an_unknown_entry_point(night: Night) -> None:
    await night.apply([*LEDGER[:-1], route("all", "/", **RESTRICTED), route("open", "/open")])
    night.change_route("/open", compression={"enabled": True})
    night.declare(*LEDGER)
    (entry,) = (await night.check()).access
    assert (entry.verdict, entry.is_certain) == (Verdict.WIDENS, False)


async def test_an_entry_point_of_another_stack_is_reported_by_host_only(night: Night, tmp_path: Path) -> None:
    policy = night.id_of("/ip_policies", "ip_policies")
    gate = {"type": "restrict-ips", "config": {"ip_policies": [policy]}}
    rules = {"on_http_request": [{"actions": [gate, *ANSWER["on_http_request"][0]["actions"]]}]}
    shop = [
        declare("ReservedDomain", "web", domain="web.example.com"),
        declare("CloudEndpoint", "web", url="https://web.example.com", traffic_policy=rules),
    ]
    other = write_project(tmp_path / "web", *shop)
    settings = (other / "reconciler.yaml").read_text().replace("stack: prod", "stack: web")
    (other / "reconciler.yaml").write_text(settings)
    assert not (await open_on(night.sandbox, other).apply()).problems
    night.plant()
    found = {entry.entry_point: entry for entry in (await night.check()).access}
    entry = found["https://web.example.com"]
    assert (entry.before, entry.after, entry.witness, entry.public) == (*("gates of stack web",) * 2, "", False)
    (check,) = await record(night)
    assert [opening.entry_point for opening in check.openings] == [ENTRY]  # nothing of the other stack


async def record(night: Night) -> tuple[DriftCheck, ...]:
    workspace = open_on(night.sandbox, night.root)
    await drift.record_drift(workspace, await workspace.drift())
    return (await read_past(workspace.config, 0.0)).checks


async def test_openings_are_recorded_and_a_list_that_was_not_read_ends_none(night: Night) -> None:
    night.plant()
    (check,) = await record(night)
    assert check.openings == (Opening(ENTRY, Verdict.WIDENS, "203.0.113.0/24", "0.0.0.0/0"),)
    night.delete_rule("0.0.0.0/0")
    night.sandbox.fault("GET /edges/tls", then="status", times=1, status=403)  # of a kind without declarations
    _, partial = await record(night)
    assert (partial.openings, partial.complete) == ((), False)
    *_, whole = await record(night)
    assert (whole.openings, whole.complete) == ((), True)


async def test_without_drift_nothing_is_analyzed(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("the account is analyzed")

    monkeypatch.setattr(access, "compare", fail)
    monkeypatch.setattr(access, "_read_account", fail)
    assert show(await night.check()) == []
    domain = night.id_of("/reserved_domains", "reserved_domains")
    night.sandbox.patch(f"/reserved_domains/{domain}", {"description": "Somebody's"})
    assert (await night.check()).has_drift
    night.plant()
    with pytest.raises(AssertionError, match="analyzed"):
        await night.check()


async def test_drift_compares_the_states_of_the_account_once(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    compare, compared = vars(access)["compare"], []

    def count(*states: Any) -> Any:
        compared.append(states)
        return compare(*states)

    monkeypatch.setattr(access, "compare", count)
    night.change_route(ip_restriction={"enabled": False, "ip_policy_ids": []})
    found = await night.check()
    assert (len(found.access), len(compared)) == (1, 1)


async def test_the_repair_leaves_no_access_to_report(night: Night) -> None:
    night.change_route(ip_restriction={"enabled": False, "ip_policy_ids": []})
    assert len((await night.check()).access) == 1
    await night.apply(LEDGER)
    assert show(await night.check()) == []

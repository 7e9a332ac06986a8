"""Like `test_platform_order`, for kinds of the public platform: authentication modules, vaults, users, pools."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_platform_order import KEPT, become, ref
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, resource
from tests.kinds import pems
from tests.sandbox.account import POLICY, SAML_METADATA

Document = dict[str, Any]

LOGINS: dict[str, Document] = {
    "saml": {"idp_metadata": SAML_METADATA},
    "oidc": {"issuer": "https://login.example.com", "client_id": "app", "client_secret": "a secret of the application"},
    "oauth": {"provider": {"google": {"email_domains": ["example.com"]}}},
}
EDGE = resource("HTTPSEdge", "app")
GROUP = resource("TunnelGroupBackend", "pods")
BACKEND = {"backend_id": ref("TunnelGroupBackend/pods")}


def route(name: str = "root", match: str = "/", *, modules: Document | None = None, **more: Any) -> Document:
    place = {"edge_id": ref("HTTPSEdge/app"), "match_type": "path_prefix", "match": match}
    return resource("HTTPSEdgeRoute", name, **place, **(modules or {}), **more)


@pytest.mark.parametrize(("before", "after"), [("saml", "oidc"), ("oauth", "saml")])
def test_an_authentication_module_is_replaced_while_the_backend_is_detached(
    on_sandbox: Project, sandbox: Sandbox, before: str, after: str
) -> None:
    become(on_sandbox, sandbox, EDGE, GROUP, route(modules={before: LOGINS[before]}, backend=BACKEND))
    calls = become(on_sandbox, sandbox, EDGE, GROUP, route(modules={after: LOGINS[after]}, backend=BACKEND))
    assert [call.partition(" ")[0] for call in calls] == ["DELETE", "DELETE", "PATCH"]
    assert [call.rpartition("/")[2] for call in calls[:2]] == ["backend", before]
    (edge,) = sandbox.get("/edges/https")["https_edges"]
    (live,) = edge["routes"]
    assert (live[before], live[after] is not None, live["backend"] is not None) == (None, True, True)


def test_an_ignored_backend_is_not_detached_during_the_apply(on_sandbox: Project, sandbox: Sandbox) -> None:
    become(on_sandbox, sandbox, EDGE, GROUP, route(backend=BACKEND, saml=LOGINS["saml"]))
    before = sandbox.get("/edges/https")["https_edges"]
    other = {**route(oidc=LOGINS["oidc"]), "lifecycle": {"ignore": ["backend"]}}
    on_sandbox.declare(EDGE, GROUP, other)
    result = on_sandbox("apply", "-y")
    assert result.code == 1
    assert "declare backend; or remove the old authentication module, apply, then add the new one" in " ".join(
        result.out.split()
    )
    assert sandbox.get("/edges/https")["https_edges"] == before


def test_an_authentication_module_is_replaced_on_an_adopted_route(on_sandbox: Project, sandbox: Sandbox) -> None:
    group = sandbox.post("/backends/tunnel_group", {"description": "theirs"})
    edge = sandbox.post("/edges/https", {"description": "theirs"})
    modules = {"backend": {"backend_id": group["id"]}, "saml": LOGINS["saml"]}
    live = sandbox.post(f"/edges/https/{edge['id']}/routes", {"match_type": "path_prefix", "match": "/", **modules})
    route = {
        "kind": "HTTPSEdgeRoute",
        "name": "theirs",
        "id": live["id"],
        "spec": {"edge_id": edge["id"], "backend": modules["backend"], "oidc": LOGINS["oidc"]},
    }
    calls = become(on_sandbox, sandbox, route)
    requests = [f"{call.partition(' ')[0]} {call.rpartition('/')[2]}" for call in calls if "/edges/" in call]
    assert requests == ["DELETE backend", "DELETE saml", "PUT oidc", "PUT backend"]


def test_an_authentication_module_can_move_to_another_route_of_the_edge(on_sandbox: Project, sandbox: Sandbox) -> None:
    become(on_sandbox, sandbox, EDGE, route("a", "/a", saml=LOGINS["saml"]), route("b", "/b"))
    become(on_sandbox, sandbox, EDGE, route("a", "/a"), route("b", "/b", oauth=LOGINS["oauth"]))
    become(on_sandbox, sandbox, EDGE, route("c", "/c", saml=LOGINS["saml"]), route("b", "/b"))


# Each needs the ones before it: created in this order, deleted in the reverse order.
CHAINS: dict[str, list[Document]] = {
    "vault, secret": [
        resource("Vault", "pay", name="pay"),
        resource("Secret", "stripe", vault_id=ref("Vault/pay"), name="stripe", value={"from_env": "STRIPE_KEY"}),
    ],
    "vault, secret by the vault's name": [
        resource("Vault", "pay", name="pay"),
        resource("Secret", "stripe", vault_name="pay", name="stripe", value={"from_env": "STRIPE_KEY"}),
    ],
    "SSH authority, certificate of a user": [
        resource("SSHCertificateAuthority", "people"),
        resource(
            "SSHUserCertificate",
            "alice",
            ssh_certificate_authority_id=ref("SSHCertificateAuthority/people"),
            public_key=pems.ssh_key(),
        ),
    ],
    "static backend, weighted, failover, edge": [
        resource("StaticBackend", "origin", address="origin.example.com:443"),
        resource("WeightedBackend", "spread", backends=[{"backend_id": ref("StaticBackend/origin"), "weight": 1}]),
        resource("FailoverBackend", "pay", backends=[ref("StaticBackend/origin")]),
        resource("TLSEdge", "pay", backend={"backend_id": ref("WeightedBackend/spread")}),
    ],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_chain_is_created_from_its_start_and_deleted_from_its_end(
    on_sandbox: Project, sandbox: Sandbox, chain: list[Document]
) -> None:
    on_sandbox.environ["STRIPE_KEY"] = "sk_live_of_the_chain"
    become(on_sandbox, sandbox)
    become(on_sandbox, sandbox, *chain)
    become(on_sandbox, sandbox)


def test_a_weighted_backend_is_updated_before_a_child_is_deleted(on_sandbox: Project, sandbox: Sandbox) -> None:
    both = [resource("StaticBackend", name, address=f"{name}.example.com:443") for name in ("a", "b")]
    shares = [{"backend_id": ref(f"StaticBackend/{name}"), "weight": 50} for name in ("a", "b")]
    become(on_sandbox, sandbox, *both, resource("WeightedBackend", "spread", backends=shares))
    become(on_sandbox, sandbox, both[0], resource("WeightedBackend", "spread", backends=shares[:1]))


def _pool(*names: str) -> list[Document]:
    shared = {"url": "https://app.internal", "bindings": ["internal"], "traffic_policy": POLICY}
    pooled = len(names) > 1
    return [resource("CloudEndpoint", name, **shared, pooling_enabled=pooled, description=name) for name in names]


def test_endpoints_can_join_and_leave_a_pool(on_sandbox: Project, sandbox: Sandbox) -> None:
    become(on_sandbox, sandbox, *_pool("b"))
    become(on_sandbox, sandbox, *_pool("a", "b"))
    become(on_sandbox, sandbox, *_pool("a", "b", "c"))
    assert len(sandbox.get("/endpoints")["endpoints"]) == 3
    become(on_sandbox, sandbox, *_pool("c"))


def test_a_vault_and_secrets_that_refer_to_its_name_are_renamed_together(on_sandbox: Project, sandbox: Sandbox) -> None:
    def both(called: str) -> list[Document]:
        named = resource("Secret", "stripe", vault_name=called, name="stripe", value={"from_env": "STRIPE_KEY"})
        return [resource("Vault", "pay", name=called), named]

    on_sandbox.environ["STRIPE_KEY"] = "sk_live_of_the_vault"
    become(on_sandbox, sandbox, *both("pay"))
    calls = become(on_sandbox, sandbox, *both("payments"))
    assert [call.split("/")[:2] for call in calls] == [["PATCH ", "vaults"]]


# --- bot users, which are service users -------------------------------------------------------------------------------

BOT = resource("BotUser", "pipeline", name="pipeline")
SETTINGS = "stack: prod\nplatform: {{profile: {}}}\nlimits: {{requests_per_minute: 100000}}\n"


def test_a_bot_user_is_created_read_and_deleted_in_the_collection_of_the_profile(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    key = {**resource("APIKey", "ci", owner_id=ref("BotUser/pipeline")), "deliver": {"token": {"to_file": "secrets/k"}}}
    on_sandbox.declare(KEPT, BOT, key)
    for profile, path in (("specification", "/bot_users"), ("ngrok", "/service_users")):
        on_sandbox.write("reconciler.yaml", SETTINGS.format(profile))
        sandbox.forget_log()
        assert on_sandbox("apply", "-y").code == 0
        assert on_sandbox("plan", "--detailed-exitcode").code == 0
        paths = {asked["path"] for asked in sandbox.log() if "_users" in asked["path"]}
        assert {asked.partition("?")[0] for asked in paths} == {path}
    (live,) = sandbox.get("/service_users")["service_users"]
    on_sandbox.declare(KEPT, {**BOT, "spec": {"name": "pipeline", "active": False}}, key)
    sandbox.forget_log()
    assert on_sandbox("apply", "-y").code == 0
    assert f"PATCH /service_users/{live['id']}" in [f"{asked['method']} {asked['path']}" for asked in sandbox.log()]
    on_sandbox.declare(KEPT)
    assert on_sandbox("apply", "-y", "--allow", "delete:BotUser=1").code == 0
    assert sandbox.get("/bot_users")["bot_users"] == []


@pytest.mark.parametrize("profile", ["specification", "ngrok"])
def test_a_bot_user_is_named_by_either_of_its_ids(on_sandbox: Project, sandbox: Sandbox, profile: str) -> None:
    on_sandbox.write("reconciler.yaml", SETTINGS.format(profile))
    live = sandbox.post("/bot_users", {"name": "pipeline"})["id"]
    for id in (live, live.replace("bot_", "service_")):
        on_sandbox.declare(KEPT, {**BOT, "id": id})
        assert on_sandbox("apply", "-y").code == 0
        assert on_sandbox("plan", "--detailed-exitcode").code == 0
    on_sandbox.declare(KEPT, {**BOT, "id": live}, {**BOT, "name": "b", "id": live.replace("bot_", "service_")})
    assert "has the same id" in on_sandbox("validate").err


def test_a_service_user_is_declared_as_a_bot_user(on_sandbox: Project) -> None:
    on_sandbox.declare(KEPT, {**BOT, "kind": "ServiceUser"})
    result = on_sandbox("validate")
    assert result.code == 1
    assert "unknown kind 'ServiceUser'; write BotUser, the kind of the same objects" in " ".join(result.err.split())
    assert "write BotUser" in on_sandbox("explain", "ServiceUser").err
    key = resource("TunnelCredential", "t", owner_id=ref("ServiceUser/pipeline"))
    on_sandbox.declare(KEPT, BOT, {**key, "deliver": {"token": {"to_file": "secrets/t"}}})
    assert "write BotUser" in on_sandbox("validate").err


def test_a_project_without_a_lasting_store_is_in_sync_with_its_bot_users(
    on_sandbox: Project, sandbox: Sandbox, tmp_path: Path
) -> None:
    def with_new_store(*arguments: str) -> Output:
        shutil.rmtree(on_sandbox.root / "state", ignore_errors=True)
        return on_sandbox(*arguments)

    on_sandbox.declare(KEPT, BOT)
    assert with_new_store("apply", "-y").code == 0
    planned = with_new_store("plan", "--detailed-exitcode", "--fail-on", "approvals")
    assert (planned.code, "No changes" in planned.out) == (0, True), planned
    assert with_new_store("drift").code == 0
    changed = {**BOT, "spec": {"name": "pipeline", "active": False}}
    on_sandbox.declare(KEPT, changed)
    assert "--allow adopt:BotUser=1" in with_new_store("plan").out
    assert with_new_store("apply", "-y").code == 4
    assert with_new_store("apply", "-y", "--allow", "adopt:BotUser=1").code == 0
    on_sandbox.declare(KEPT)
    assert with_new_store("apply", "-y").code == 0
    assert [bot["name"] for bot in sandbox.get("/bot_users")["bot_users"]] == ["pipeline"]


def test_a_bot_user_that_was_adopted_without_approval_is_deleted_only_by_its_name(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    sandbox.post("/bot_users", {"name": "pipeline"})
    on_sandbox.declare(KEPT, BOT)
    assert on_sandbox("apply", "-y").code == 0
    on_sandbox.declare(KEPT)
    blocked = on_sandbox("apply", "-y", "--allow", "delete:BotUser=1")
    assert (blocked.code, "--allow delete:BotUser/pipeline=1" in blocked.out + blocked.err) == (4, True)
    sandbox.get("/bot_users")
    assert on_sandbox("apply", "-y", "--allow", "delete:BotUser/pipeline=1").code == 0
    assert sandbox.get("/bot_users")["bot_users"] == []

"""`reconciler list`: whatever there is of a kind, with nothing in it that must not be seen."""

from __future__ import annotations

import json
from typing import Any

from reconciler.cli.terminal import exit_codes
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

SECRET = "a secret of the application"
SESSION = "ts_1aBcDeFgHiJkLmNoPqRsTuVwXyZ"
TUNNEL = "tn_1aBcDeFgHiJkLmNoPqRsTuVwXyZ"


def list_objects(project: Project, kind: str) -> list[dict[str, Any]]:
    result = project("list", kind, "--format", "json")
    assert (result.code, result.err) == (0, ""), result
    return list(json.loads(result.out)["objects"])


def test_a_list_prints_the_owner_of_each_object(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(resource("ReservedDomain", "ours", domain="ours.example.com"))
    assert on_sandbox("apply", "-y").code == 0
    sandbox.post("/reserved_domains", {"domain": "theirs.example.com"})
    lines = on_sandbox("list", "ReservedDomain").out.splitlines()
    assert [line.split()[1:-1] for line in lines] == [
        ["NAME", "MANAGED", "BY"],
        ["theirs.example.com"],
        ["ours.example.com", "prod", "ReservedDomain/ours"],
    ]


def test_children_are_listed_with_their_parent_and_without_secrets(on_sandbox: Project, sandbox: Sandbox) -> None:
    edge = sandbox.post("/edges/https", {})
    oidc = {"issuer": "https://login.example.com", "client_id": "app", "client_secret": SECRET}
    body = {"match_type": "path_prefix", "match": "/", "oidc": oidc, "webhook_verification": None}
    made = sandbox.post(f"/edges/https/{edge['id']}/routes", body)
    (found,) = list_objects(on_sandbox, "HTTPSEdgeRoute")
    assert found == {**made, "oidc": {**made["oidc"], "client_secret": "(secret)"}}
    assert f"{edge['id']}/{made['id']}" in on_sandbox("list", "HTTPSEdgeRoute").out


def test_objects_that_cannot_be_declared_can_be_listed(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.plant("tunnel_sessions", {"id": SESSION, "os": "linux\x1b[31m", "region": "eu"})
    sandbox.plant("tunnels", {"id": TUNNEL, "public_url": "https://a.example.com", "tunnel_session": {"$ref": SESSION}})
    sandbox.plant("endpoints", {"type": "ephemeral", "url": "https://a.example.com", "tunnel": {"$ref": TUNNEL}})
    (tunnel,) = list_objects(on_sandbox, "Tunnel")
    assert tunnel["tunnel_session"]["uri"] == f"{sandbox.base_url}/tunnel_sessions/{SESSION}"
    assert [item["type"] for item in list_objects(on_sandbox, "Endpoint")] == ["ephemeral"]
    assert list_objects(on_sandbox, "CloudEndpoint") == []
    assert "\x1b" not in on_sandbox("list", "TunnelSession", "--format", "json").out
    sandbox.request("POST", f"/tunnel_sessions/{SESSION}/restart")
    assert len(list_objects(on_sandbox, "Tunnel")) == 1
    sandbox.request("POST", f"/tunnel_sessions/{SESSION}/stop")
    assert list_objects(on_sandbox, "Tunnel") == list_objects(on_sandbox, "TunnelSession") == []


def test_a_list_of_a_kind_without_objects_reports_that_none_were_found(on_sandbox: Project) -> None:
    result = on_sandbox("list", "ApplicationUser")
    assert (result.code, result.out, result.err) == (0, "", "No ApplicationUser objects found.\n")


def test_an_incomplete_list_is_an_error_and_marked_in_json(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /vaults", then="status", status=418)
    result = on_sandbox("list", "Vault", "--format", "json")
    assert (result.code, json.loads(result.out)["complete"]) == (exit_codes.ERROR, False)
    assert "the list of Vault is incomplete" in result.err


def test_a_kind_that_does_not_exist_is_no_kind(on_sandbox: Project) -> None:
    result = on_sandbox("list", "Tunel")
    assert (result.code, "did you mean Tunnel?" in result.err) == (exit_codes.USAGE, True)


def test_all_kinds_are_listed_with_the_owner_of_each_object(on_sandbox: Project, sandbox: Sandbox) -> None:
    rule = resource(
        "IPPolicyRule", "office", cidr="10.0.0.0/8", action="allow", ip_policy_id={"ref": "IPPolicy/office"}
    )
    on_sandbox.declare(resource("IPPolicy", "office", description="Office"), rule, resource("BotUser", "ci", name="ci"))
    assert on_sandbox("apply", "-y").code == 0
    sandbox.post("/reserved_domains", {"domain": "theirs.example.com"})
    sandbox.post("/endpoints", {"type": "cloud", "url": "https://theirs.example.com", "traffic_policy": "{}"})
    sandbox.forget_log()
    answer = on_sandbox("list")
    assert answer.code == 0, answer
    reads = [(request["method"], request["path"]) for request in sandbox.log()]
    assert len(reads) == len(set(reads))
    assert {method for method, _ in reads} == {"GET"}
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[0] == ["ID", "NAME", "MANAGED", "BY"]
    assert ["IPPolicy", "(1)"] in lines
    owner_of = {line[1]: line[2:] for line in lines if "_" in line[0]}
    assert owner_of["Office"] == ["prod", "IPPolicy/office"]
    assert owner_of["ci"] == ["prod", "BotUser/ci"]
    assert owner_of["10.0.0.0/8"] == ["prod", "IPPolicyRule/office"]
    assert owner_of["theirs.example.com"] == []
    assert "Endpoint (" not in answer.out.replace("CloudEndpoint (1)", "")


def test_the_list_of_all_kinds_fits_80_columns_and_is_json(on_sandbox: Project, sandbox: Sandbox) -> None:
    edge = sandbox.post("/edges/https", {"description": "long " * 20})
    sandbox.post(f"/edges/https/{edge['id']}/routes", {"match_type": "path_prefix", "match": "/" + "a" * 90})
    on_sandbox.declare(resource("IPPolicy", "a-very-long-name-of-a-policy-in-the-office", description="Office " * 9))
    assert on_sandbox("apply", "-y").code == 0
    on_sandbox.environ["COLUMNS"] = "80"
    answer = on_sandbox("list")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    found = json.loads(on_sandbox("list", "--format", "json").out)
    assert (found["complete"], found["incomplete"]) == (True, {})
    (policy,) = (item for item in found["objects"] if item["kind"] == "IPPolicy")
    assert policy["owner"] == {"stack": "prod", "address": "IPPolicy/a-very-long-name-of-a-policy-in-the-office"}
    (route,) = (item for item in found["objects"] if item["kind"] == "HTTPSEdgeRoute")
    assert (route["owner"], route["id"].startswith(edge["id"])) == (None, True)


def test_incomplete_lists_are_named(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /vaults", then="status", status=418)
    answer = on_sandbox("list", "--format", "json")
    assert (answer.code, list(json.loads(answer.out)["incomplete"])) == (exit_codes.ERROR, ["Vault"])
    assert "error: the list of Vault is incomplete: " in answer.err


def test_an_empty_account_has_no_objects(on_sandbox: Project) -> None:
    answer = on_sandbox("list")
    assert (answer.code, answer.out, answer.err) == (0, "", "No objects found.\n")

"""`reconciler list`: whatever there is of a kind, with nothing in it that must not be seen."""

from __future__ import annotations

import json
from typing import Any

from reconciler.cli.terminal import exit_codes
from tests.end_to_end.project import Project, resource
from tests.platform import Sandbox

SECRET = "a secret of the application"
SESSION = "ts_1aBcDeFgHiJkLmNoPqRsTuVwXyZ"
TUNNEL = "tn_1aBcDeFgHiJkLmNoPqRsTuVwXyZ"


def listed(project: Project, kind: str) -> list[dict[str, Any]]:
    said = project("list", kind, "--format", "json")
    assert (said.code, said.err) == (0, ""), said
    return list(json.loads(said.out)["objects"])


def test_everybodys_objects_are_listed_with_whose_they_are(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(resource("ReservedDomain", "ours", domain="ours.example.com"))
    assert on_sandbox("apply", "-y").code == 0
    sandbox.post("/reserved_domains", {"domain": "theirs.example.com"})
    lines = on_sandbox("list", "ReservedDomain").out.splitlines()
    assert [line.split()[1:-1] for line in lines] == [
        ["NAME", "MANAGED", "BY"],
        ["theirs.example.com"],
        ["ours.example.com", "prod", "ReservedDomain/ours"],
    ]


def test_what_a_parent_shows_is_listed_below_it_and_its_secrets_are_not_shown(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    edge = sandbox.post("/edges/https", {})
    oidc = {"issuer": "https://login.example.com", "client_id": "app", "client_secret": SECRET}
    body = {"match_type": "path_prefix", "match": "/", "oidc": oidc, "webhook_verification": None}
    made = sandbox.post(f"/edges/https/{edge['id']}/routes", body)
    (found,) = listed(on_sandbox, "HTTPSEdgeRoute")
    assert found == {**made, "oidc": {**made["oidc"], "client_secret": "(secret)"}}
    assert f"{edge['id']}/{made['id']}" in on_sandbox("list", "HTTPSEdgeRoute").out


def test_what_no_manifest_declares_can_be_looked_at(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.plant("tunnel_sessions", {"id": SESSION, "os": "linux\x1b[31m", "region": "eu"})
    sandbox.plant("tunnels", {"id": TUNNEL, "public_url": "https://a.example.com", "tunnel_session": {"$ref": SESSION}})
    sandbox.plant("endpoints", {"type": "ephemeral", "url": "https://a.example.com", "tunnel": {"$ref": TUNNEL}})
    (tunnel,) = listed(on_sandbox, "Tunnel")
    assert tunnel["tunnel_session"]["uri"] == f"{sandbox.base_url}/tunnel_sessions/{SESSION}"
    assert [each["type"] for each in listed(on_sandbox, "Endpoint")] == ["ephemeral"]
    assert listed(on_sandbox, "CloudEndpoint") == []
    assert "\x1b" not in on_sandbox("list", "TunnelSession", "--format", "json").out
    sandbox.request("POST", f"/tunnel_sessions/{SESSION}/restart")
    assert len(listed(on_sandbox, "Tunnel")) == 1
    sandbox.request("POST", f"/tunnel_sessions/{SESSION}/stop")
    assert listed(on_sandbox, "Tunnel") == listed(on_sandbox, "TunnelSession") == []


def test_nothing_is_said_to_be_nothing(on_sandbox: Project) -> None:
    said = on_sandbox("list", "ApplicationUser")
    assert (said.code, said.out, said.err) == (0, "", "No ApplicationUser objects found.\n")


def test_a_list_that_is_cut_short_is_told_from_a_whole_one(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /vaults", then="status", status=418)
    said = on_sandbox("list", "Vault", "--format", "json")
    assert (said.code, json.loads(said.out)["complete"]) == (exit_codes.ERROR, False)
    assert "the list of Vault is incomplete" in said.err


def test_a_kind_that_does_not_exist_is_no_kind(on_sandbox: Project) -> None:
    said = on_sandbox("list", "Tunel")
    assert (said.code, "did you mean Tunnel?" in said.err) == (exit_codes.USAGE, True)

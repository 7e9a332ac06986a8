"""The platform lists what edges serve among the endpoints: these are no cloud endpoints, and stand in nobody's way."""

from __future__ import annotations

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

POLICY = {"on_http_request": [{"actions": [{"type": "deny"}]}]}


def edges_and_endpoints() -> list[dict[str, object]]:
    return [
        resource("ReservedDomain", "app", domain="app.example.com"),
        resource("ReservedDomain", "web", domain="web.example.com"),
        resource("TLSEdge", "app", hostports=["app.example.com:443"], description="edge"),
        resource("HTTPSEdge", "web", hostports=["web.example.com:443"]),
        # On the host of the TLS edge, which the platform allows.
        resource("CloudEndpoint", "app", url="https://app.example.com", traffic_policy=POLICY),
    ]


def types(sandbox: Sandbox) -> list[str]:
    return sorted(endpoint["type"] for endpoint in sandbox.get("/endpoints")["endpoints"])


def test_the_endpoints_of_edges_are_neither_planned_nor_imported_nor_counted(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(*edges_and_endpoints())
    assert on_sandbox("apply", "-y").code == 0
    assert types(sandbox) == ["cloud", "edge", "edge"]
    again = on_sandbox("plan", "--detailed-exitcode")
    assert again.code == 0, again.out
    assert "CloudEndpoint" not in on_sandbox("drift", "--unowned").out
    assert "Endpoint" not in on_sandbox("import").err
    gone = [endpoint for endpoint in edges_and_endpoints() if endpoint["kind"] != "CloudEndpoint"]
    on_sandbox.declare(*gone)
    assert on_sandbox("apply", "-y", "--allow", "delete:CloudEndpoint=1").code == 0
    assert types(sandbox) == ["edge", "edge"]


def test_an_https_edge_still_waits_for_the_endpoint_on_its_host(on_sandbox: Project, sandbox: Sandbox) -> None:
    documents = edges_and_endpoints()
    on_sandbox.declare(*documents)
    assert on_sandbox("apply", "-y").code == 0
    tls = next(document for document in documents if document["kind"] == "TLSEdge")
    tls |= {"kind": "HTTPSEdge"}
    on_sandbox.declare(*documents)
    refused = on_sandbox("plan")
    assert refused.code == 1
    assert "app.example.com:443 already" in refused.out + refused.err

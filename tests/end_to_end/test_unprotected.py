"""A route with a backend is never without protection: checked after every call of several changes of modules."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource
from tests.sandbox.account import SAML_METADATA

Document = dict[str, Any]

PROTECTION: dict[str, Document] = {
    "saml": {"idp_metadata": SAML_METADATA},
    "oidc": {"issuer": "https://idp.test", "client_id": "c", "client_secret": {"from_env": "SECRET"}},
    "webhook_verification": {"provider": "github", "secret": {"from_env": "SECRET"}},
    "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/office"}]},
}
BACKEND = {"backend_id": {"ref": "TunnelGroupBackend/pods"}}


class Watched(ThreadingHTTPServer):
    """Passes requests on to a sandbox, one at a time, and reads every route after each request that may change one."""

    daemon_threads = True
    request_queue_size = 64  # a plan reads all lists at once; of more connections than wait here, some take seconds

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}"
        self.sandbox, self.turn = sandbox, threading.Lock()
        self.seen: list[tuple[str, Document]] = []  # the call, and a route after it

    def look(self, call: str) -> None:
        for edge in self.sandbox.get("/edges/https")["https_edges"]:
            self.seen += [(call, route) for route in edge["routes"]]

    def open_calls(self) -> list[str]:
        """The calls after which a route had a backend and no protection."""
        return [call for call, route in self.seen if route["backend"] and not any(route[name] for name in PROTECTION)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Watched

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.turn:
            answer = self.server.sandbox.request(self.command, self.path, content=body, headers=dict(self.headers))
            if self.command != "GET":
                self.server.look(f"{self.command} {self.path}")
        self.send_response(answer.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

    def log_message(self, *_: Any) -> None:
        """Prints nothing, since the command shares its standard error."""


@pytest.fixture
def watched(project: Project, sandbox: Sandbox) -> Iterator[Watched]:
    project.use(sandbox)
    with Watched(sandbox) as server:
        project.environ |= {"RECONCILER_BASE_URL": server.base_url, "SECRET": "canary-of-the-route"}
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _become(project: Project, *modules: str, backend: bool = True, **more: Any) -> None:
    spec: Document = {name: PROTECTION[name] for name in modules} | ({"backend": BACKEND} if backend else {}) | more
    edge = {"edge_id": {"ref": "HTTPSEdge/app"}, "match_type": "path_prefix", "match": "/"}
    project.declare(
        resource("IPPolicy", "office"),
        resource("TunnelGroupBackend", "pods", labels={"app": "a"}),
        resource("HTTPSEdge", "app"),
        resource("HTTPSEdgeRoute", "app", **edge, **spec),
    )
    result = project("apply", "-y", "--quiet")
    assert (result.code, result.err) == (0, ""), result
    again = project("plan", "--quiet")
    assert (again.code, again.err) == (0, ""), again


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("saml", "webhook_verification"),
        ("webhook_verification", "saml"),
        ("saml", "oidc"),
        ("oidc", "saml"),
        ("ip_restriction", "oidc"),
        ("webhook_verification", "ip_restriction"),
    ],
)
def test_a_route_is_protected_while_its_protection_is_replaced(
    project: Project, watched: Watched, before: str, after: str
) -> None:
    _become(project, before)
    _become(project, after)
    assert watched.open_calls() == []
    last = watched.seen[-1][1]
    assert [name for name in PROTECTION if last[name]] == [after]
    assert last["backend"]


def test_a_route_is_closed_before_it_is_stripped_and_protected_before_it_is_opened(
    project: Project, watched: Watched
) -> None:
    _become(project, "saml", "ip_restriction")
    _become(project, backend=False)
    _become(project, "webhook_verification")
    assert watched.open_calls() == []


def test_saml_moves_between_the_routes_of_an_edge_without_an_open_route(project: Project, watched: Watched) -> None:
    for login, other in (("first", "second"), ("second", "first")):
        spec = {"edge_id": {"ref": "HTTPSEdge/app"}, "match_type": "path_prefix", "backend": BACKEND}
        project.declare(
            resource("TunnelGroupBackend", "pods", labels={"app": "a"}),
            resource("HTTPSEdge", "app"),
            resource("HTTPSEdgeRoute", login, **spec, match=f"/{login}", saml=PROTECTION["saml"]),
            resource(
                "HTTPSEdgeRoute",
                other,
                **spec,
                match=f"/{other}",
                webhook_verification=PROTECTION["webhook_verification"],
            ),
        )
        result = project("apply", "-y", "--quiet")
        assert (result.code, result.err) == (0, ""), result
    assert watched.open_calls() == []


@pytest.mark.parametrize(("before", "after"), [("saml", "webhook_verification"), ("saml", "oidc")])
def test_an_adopted_route_is_never_open(project: Project, watched: Watched, before: str, after: str) -> None:
    edge = watched.sandbox.post("/edges/https", {})["id"]
    route = watched.sandbox.post(f"/edges/https/{edge}/routes", {"match_type": "path_prefix", "match": "/"})["id"]
    for name in (before, after):
        project.declare(
            resource("IPPolicy", "office"),
            resource("TunnelGroupBackend", "pods", labels={"app": "a"}),
            {
                **resource("HTTPSEdgeRoute", "app", edge_id=edge, backend=BACKEND, **{name: PROTECTION[name]}),
                "id": route,
            },
        )
        result = project("apply", "-y", "--quiet")
        assert (result.code, result.err) == (0, ""), result
    assert watched.open_calls() == []
    assert [name for name in PROTECTION if watched.seen[-1][1][name]] == [after]

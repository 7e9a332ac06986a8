"""Messages for a platform that is unreachable, fails, or is not the platform, compared as a whole."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from reconciler import kinds
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, policies, resource

pytestmark = pytest.mark.usefixtures("no_waiting")

PORT = re.compile(r"127\.0\.0\.1:\d{5}")


class Listener(ThreadingHTTPServer):
    """Returns responses by path, otherwise those of an empty account; records the requested paths."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}"
        empty: dict[str, Any] = {
            kind.path: {kind.list_key: [], "uri": "", "next_page_uri": None} for kind in kinds.every()
        }
        self.answers = {**empty, **answers}
        self.paths: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listener

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        answer = self.server.answers.get(self.path.partition("?")[0], "<html>not found</html>")
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Prints nothing, since the command shares its standard error."""


@contextmanager
def start_listener(answers: Mapping[str, Any] | None = None) -> Iterator[Listener]:
    with Listener(answers or {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def run_at(project: Project, base_url: str, *words: str) -> Output:
    """The output with fixed ports, operation ids and ids."""
    project.environ |= {"RECONCILER_BASE_URL": base_url, "RECONCILER_API_KEY": "key-canary-77"}
    result = project(*words)
    assert "key-canary-77" not in result.out + result.err
    return plain(result)


def plain(result: Output) -> Output:
    result = result.number_ids()
    return Output(result.code, PORT.sub("127.0.0.1:40000", result.out), PORT.sub("127.0.0.1:40000", result.err))


def test_an_unreachable_platform_is_reported_after_retries(project: Project) -> None:
    assert run_at(project, "http://127.0.0.1:1", "plan") == Output(
        1,
        "",
        "cannot reach http://127.0.0.1:1: connection refused; retrying\n"
        "error: nothing could be read from the platform: cannot reach http://127.0.0.1:1: connection refused\n",
    )


def test_an_unknown_api_key_exits_with_6(on_sandbox: Project) -> None:
    on_sandbox.environ["RECONCILER_API_KEY"] = "another"
    assert plain(on_sandbox("plan")) == Output(
        6,
        "",
        "error: The API key is invalid. (status 403, ERR_NGROK_203, op_1); check the API key and its permissions\n",
    )


def test_a_web_site_instead_of_the_api_is_reported(project: Project) -> None:
    with start_listener(dict.fromkeys((kind.path for kind in kinds.every()), "<html>Welcome</html>")) as site:
        assert run_at(project, site.base_url, "plan") == Output(
            1,
            "",
            "error: nothing could be read from the platform: http://127.0.0.1:40000 returned text/html, "
            "not JSON (status 200); check platform.base_url\n",
        )


def test_plain_http_to_another_machine_is_refused_before_any_request(project: Project) -> None:
    assert run_at(project, "http://api.example.com", "plan") == Output(
        1,
        "",
        "RECONCILER_BASE_URL: would send the API key unencrypted; use https "
        "(http is accepted for loopback addresses only)\n1 error\n",
    )


def test_a_collection_that_cannot_be_read_stops_its_own_kind(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /ip_policies", then="status", status=500, times=0, body={"msg": "The database is away."})
    on_sandbox.declare(*policies("a"))
    assert on_sandbox("plan") == Output(
        1,
        """\
! manifests/all.yaml:1:1: IPPolicy/a: the list of IPPolicy objects is incomplete: The database is
  away. (status 500); try again; nothing is planned for a kind until its list is complete
""",
        "The database is away. (status 500); retrying\n1 error in the plan\n",
    )


def test_a_temporary_error_is_retried(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /ip_policies", then="status", status=503, times=3, body={"msg": "Back in a moment."})
    on_sandbox.declare(*policies("a"))
    result = on_sandbox("plan", "--detailed-exitcode")
    assert (result.code, result.err) == (2, "Back in a moment. (status 503); retrying\n")


def test_a_next_page_elsewhere_is_not_followed(project: Project) -> None:
    with start_listener() as elsewhere, start_listener() as platform:
        following = f"{elsewhere.base_url}/ip_policies?before_id=ipp_1"
        platform.answers["/ip_policies"] = {"ip_policies": [{"id": "ipp_1"}], "uri": "", "next_page_uri": following}
        project.declare(*policies("a"))
        result = run_at(project, platform.base_url, "plan")
        assert elsewhere.paths == []
    assert result == Output(
        1,
        """\
! manifests/all.yaml:1:1: IPPolicy/a: the list of IPPolicy objects is incomplete: the platform's
  next_page_uri leads to http://127.0.0.1:40000, not to http://127.0.0.1:40000; it was not followed,
  and the key was not sent there; try again; nothing is planned for a kind until its list is
  complete

Not managed: 1 IPPolicy (list them with `drift --unmanaged`).
""",
        "1 error in the plan\n",
    )


def test_circular_pages_are_reported(project: Project) -> None:
    with start_listener() as platform:
        page = {"ip_policies": [{"id": "ipp_1"}], "uri": "", "next_page_uri": f"{platform.base_url}/ip_policies"}
        platform.answers["/ip_policies"] = page
        project.declare(*policies("a"))
        result = run_at(project, platform.base_url, "plan")
        assert platform.paths.count("/ip_policies") == 1
    assert result == Output(
        1,
        """\
! manifests/all.yaml:1:1: IPPolicy/a: the list of IPPolicy objects is incomplete: a page of
  /ip_policies links to an earlier page; the list is not complete; try again; nothing is planned for
  a kind until its list is complete

Not managed: 1 IPPolicy (list them with `drift --unmanaged`).
""",
        "1 error in the plan\n",
    )


def test_nothing_is_deleted_after_an_incomplete_list(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a", "b"))
    on_sandbox("apply", "-y")
    sandbox.fault("GET /ip_policies", then="status", status=500, times=0)
    on_sandbox.declare(*policies("c"))
    sandbox.forget_log()
    assert on_sandbox("apply", "-y").code == 1
    assert sandbox.calls() == []


@pytest.mark.parametrize("is_ignored", [False, True])
def test_the_certificate_policy_of_an_ingress_is_removed_or_the_apply_fails_with_the_reason(
    on_sandbox: Project, sandbox: Sandbox, is_ignored: bool
) -> None:
    assert sandbox.request("PUT", "/_sandbox/variants", {"null_ignored": is_ignored}).status_code == 204
    ingress = resource("AgentIngress", "connect", domain="connect.example.com", certificate_management_policy={})
    on_sandbox.declare(ingress)
    assert on_sandbox("apply", "-y").code == 0
    del ingress["spec"]["certificate_management_policy"]
    on_sandbox.declare(ingress)
    sandbox.forget_log()
    result = on_sandbox("apply", "-y")
    (live,) = sandbox.get("/agent_ingresses")["ingresses"]
    assert sandbox.calls() == [f"PATCH /agent_ingresses/{live['id']}"], "the request is not repeated"
    if not is_ignored:
        assert (result.code, live["certificate_management_policy"]) == (0, None)
        assert on_sandbox("plan", "--detailed-exitcode").code == 0
        return
    assert result.code == 1
    why = "the platform did not remove certificate_management_policy: it ignores null"
    assert f"1/1  update AgentIngress/connect: failed: {why}; " in result.err
    assert "0 calls succeeded, 1 failed" in result.out
    ingress["lifecycle"] = {"ignore": ["certificate_management_policy"]}
    on_sandbox.declare(ingress)
    assert on_sandbox("apply", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0

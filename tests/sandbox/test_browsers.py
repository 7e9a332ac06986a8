"""The control paths and the agent's API, which need no key: usable by local programs, not by pages of other sites."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox, open_client
from tests.sandbox.account import Account

OWN = ["127.0.0.1:1234", "[::1]:80", "10.1.2.3", "localhost:4040", "LOCALHOST.", "agent.localhost:1", "sandbox:8080"]
FOREIGN = ["attacker.example.com", "127.0.0.1.attacker.example.com:80", "localhost.attacker.com", "", "a b", "x.y"]


@pytest.mark.parametrize("host", [*OWN, *FOREIGN])
def test_only_local_hosts_are_accepted(sandbox: Sandbox, host: str) -> None:
    answer = sandbox.request("GET", "/_sandbox/requests", headers={"Host": host})
    assert answer.status_code in ((200,) if host in OWN else (400, 403))  # 400: no HTTP at all


@pytest.mark.parametrize("origin", ["http://attacker.example.com", "null", "file://", "http://127.0.0.1:1"])
def test_a_request_from_another_origin_is_refused(sandbox: Sandbox, origin: str) -> None:
    Account(sandbox).make("/ip_policies")
    assert sandbox.request("DELETE", "/_sandbox", headers={"Origin": origin}).status_code == 403
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1
    assert sandbox.request("DELETE", "/_sandbox", headers={"Origin": sandbox.base_url}).status_code == 204


FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_of_a_web_page_is_refused(sandbox: Sandbox, kind: str | None) -> None:
    body = b'{"on": "* *", "then": "cut", "times": 0}'
    headers = {} if kind is None else {"Content-Type": kind}
    assert sandbox.request("POST", "/_sandbox/faults", content=body, headers=headers).status_code == 400
    assert sandbox.get("/_sandbox/faults")["faults"] == []


def test_the_agent_refuses_pages_of_other_sites(start_sandbox: Any) -> None:
    running = start_sandbox(agent=True)
    with open_client(running.agent_url) as agent:
        for headers in ({"Host": "attacker.example.com"}, {"Origin": "https://attacker.example.com"}):
            assert agent.get("/api/tunnels", headers=headers).status_code == 403
            assert agent.post("/api/tunnels", json={}, headers=headers).status_code == 403
        assert agent.post("/api/tunnels", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
        assert agent.get("/api/tunnels").status_code == 200

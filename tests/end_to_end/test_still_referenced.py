"""Refusals of objects that are still referenced are retried; other refusals are not."""

from __future__ import annotations

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource
from tests.sandbox.account import POLICY

pytestmark = pytest.mark.usefixtures("no_waiting")

OTHER = resource("IPPolicy", "other")
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")
ENDPOINT = resource("CloudEndpoint", "pay", url="https://pay.example.com", traffic_policy=POLICY)
EDGE = resource("HTTPSEdge", "pay", hostports=["pay.example.com:443"])
_ALLOWED = ("-y", "--quiet", "--allow", "delete:ReservedDomain=1")


def _refuses(sandbox: Sandbox, on: str, code: int, times: int) -> None:
    body = {"error_code": f"ERR_NGROK_{code}", "status_code": 400, "msg": "Not now.", "details": {}}
    sandbox.fault(on, then="status", status=400, body=body, times=times)


def _attempts(sandbox: Sandbox, method: str, path: str) -> list[int]:
    return [
        request["status"]
        for request in sandbox.log()
        if request["method"] == method and request["path"].startswith(path)
    ]


@pytest.mark.parametrize("code", [446, 511])
def test_a_domain_that_is_still_attached_is_deleted_once_it_is_free(
    on_sandbox: Project, sandbox: Sandbox, code: int
) -> None:
    on_sandbox.declare(OTHER, DOMAIN)
    assert on_sandbox("apply", *_ALLOWED).code == 0
    on_sandbox.declare(OTHER)
    _refuses(sandbox, "DELETE /reserved_domains/*", code, times=3)
    assert on_sandbox("apply", *_ALLOWED).code == 0
    assert _attempts(sandbox, "DELETE", "/reserved_domains") == [400, 400, 400, 204]
    assert sandbox.get("/reserved_domains")["reserved_domains"] == []


@pytest.mark.parametrize(
    ("declared", "path", "code"),
    [
        (ENDPOINT, "/endpoints", 18016),
        (ENDPOINT, "/endpoints", 18017),
        (EDGE, "/edges/https", 7122),
        (EDGE, "/edges/https", 381),
    ],
)
def test_a_create_is_retried_until_a_conflicting_resource_is_released(
    on_sandbox: Project, sandbox: Sandbox, declared: dict[str, object], path: str, code: int
) -> None:
    on_sandbox.declare(DOMAIN, declared)
    _refuses(sandbox, f"POST {path}", code, times=2)
    assert on_sandbox("apply", *_ALLOWED).code == 0
    assert _attempts(sandbox, "POST", path) == [400, 400, 201]


def test_a_delete_of_an_attached_domain_fails_after_the_last_retry(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(OTHER, DOMAIN)
    assert on_sandbox("apply", *_ALLOWED).code == 0
    on_sandbox.declare(OTHER)
    _refuses(sandbox, "DELETE /reserved_domains/*", 446, times=0)
    result = on_sandbox("apply", *_ALLOWED)
    assert (result.code, "ERR_NGROK_446" in result.err) == (1, True)
    assert len(_attempts(sandbox, "DELETE", "/reserved_domains")) == 6


@pytest.mark.parametrize("code", [413, 1408, 18006, 4112])
def test_any_other_refusal_is_final(on_sandbox: Project, sandbox: Sandbox, code: int) -> None:
    on_sandbox.declare(OTHER)
    _refuses(sandbox, "POST /ip_policies", code, times=1)
    result = on_sandbox("apply", *_ALLOWED)
    assert (result.code, f"ERR_NGROK_{code}" in result.err) == (1, True)
    assert _attempts(sandbox, "POST", "/ip_policies") == [400]

"""An account that cannot be read whole: nothing outside it is changed as if its objects were gone."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.cli.code_hosts import TOKEN, CodeHost
from tests.end_to_end.webhook import Hook
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OFFICE = resource("IPPolicy", "office", description="Office")
SHOP = resource("ReservedDomain", "shop", domain="shop.example.com")
SETTINGS = "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000}\ndns: {zones: [example.com]}\n"

UNREAD: dict[str, tuple[Callable[[Sandbox], object], int]] = {
    "a list that is refused": (lambda box: box.fault("GET /ip_policies", then="status", status=400, times=0), 1),
    "a list that is forbidden": (lambda box: box.fault("GET /ip_policies", then="status", status=403, times=0), 6),
    "a list that fails": (lambda box: box.fault("GET /ip_policies", then="status", status=503, times=0), 1),
    "another list that is refused": (
        lambda box: box.fault("GET /reserved_domains", then="status", status=400, times=0),
        1,
    ),
    "a key that is refused": (lambda box: box.fault("GET *", then="status", status=401, times=0), 6),
    "a platform that fails": (lambda box: box.fault("GET *", then="status", status=503, times=0), 1),
}


@pytest.fixture
def applied(on_sandbox: Project, host: CodeHost) -> Project:
    on_sandbox.environ |= {"GITHUB_API_URL": host.url, "GITHUB_REPOSITORY": "octo/infra", "GITHUB_TOKEN": TOKEN}
    on_sandbox.write("reconciler.yaml", SETTINGS)
    on_sandbox.declare(OFFICE, SHOP)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    return on_sandbox


def describe_office(sandbox: Sandbox, text: str) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": text})


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("unread", UNREAD)
def test_the_issue_of_drift_is_unchanged(applied: Project, host: CodeHost, sandbox: Sandbox, unread: str) -> None:
    describe_office(sandbox, "by hand")
    assert applied("drift", "--issue").code == 2
    assert len(host.issues) == 1
    before, changes = copy.deepcopy(host.issues), len(host.changes)
    describe_office(sandbox, "Office")  # repaired, but the account cannot be read
    refuse, code = UNREAD[unread]
    refuse(sandbox)
    checked = applied("drift", "--issue")
    assert (checked.code, host.issues, len(host.changes)) == (code, before, changes), checked
    assert "closed" not in checked.err


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("unread", UNREAD)
def test_no_notification_is_sent_that_drift_is_over(
    applied: Project, hook: Hook, sandbox: Sandbox, unread: str
) -> None:
    describe_office(sandbox, "by hand")
    drift = ("drift", "--health", "--record", "--notify", hook.url)
    assert applied(*drift).code == 2
    sent = len(hook.posted)
    assert sent == 1
    refuse, code = UNREAD[unread]
    refuse(sandbox)
    checked = applied(*drift)
    assert (checked.code, len(hook.posted)) == (code, sent), checked


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("unread", [name for name in UNREAD if "another" in name or not name.startswith("a list")])
def test_the_files_of_dns_records_are_unchanged(applied: Project, sandbox: Sandbox, unread: str) -> None:
    assert applied("dns", "--out", "zones").code == 0
    files = {file: file.read_text() for file in (applied.root / "zones").iterdir()}
    assert "shop" in "".join(files.values())
    UNREAD[unread][0](sandbox)
    for words in (("dns", "--out", "zones"), ("dns", "--out", "zones", "--check")):
        result = applied(*words)
        assert result.code in (1, 6), result
        assert {file: file.read_text() for file in (applied.root / "zones").iterdir()} == files
    printed = applied("dns", "--format", "bind")
    assert (printed.code in (1, 6), printed.err != "") == (True, True), printed


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("unread", UNREAD)
def test_the_status_of_the_stack_is_unknown(applied: Project, sandbox: Sandbox, unread: str) -> None:
    UNREAD[unread][0](sandbox)
    status = applied("status")
    assert status.code in (2, 6, 1), status
    assert "in sync" not in status.out

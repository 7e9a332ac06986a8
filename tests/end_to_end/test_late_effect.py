"""A request that outlives its sender: the platform works on a create after the process that sent it was killed.

The rerun looks at an account in which the object does not show yet.
"""

from __future__ import annotations

import time

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

pytestmark = pytest.mark.usefixtures("over_socket")

PLATFORM_TAKES = 4.0  # seconds; the rerun has to look before they have passed
APPLY = ("apply", "-y", "--quiet")


def credential() -> dict[str, object]:
    return {**resource("TunnelCredential", "agent"), "deliver": {"token": {"to_file": "secrets/agent"}}}


def kill_while_sending(project: Project, sandbox: Sandbox, on: str) -> None:
    sandbox.fault(on, then="answer", delay=PLATFORM_TAKES)
    process = project.start(*APPLY)
    deadline = time.monotonic() + 60
    while not any(fault.get("seen") for fault in sandbox.get("/_sandbox/faults")["faults"]):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.communicate()
    sandbox.delete("/_sandbox/faults")


def test_a_create_that_may_still_take_effect_is_waited_for(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.write("reconciler.yaml", "stack: prod\nlimits: {settle_seconds: 6}\n")
    on_sandbox.declare(resource("IPPolicy", "office"))
    kill_while_sending(on_sandbox, sandbox, "POST /ip_policies")
    result = on_sandbox("apply", "-y")
    assert result.code == 0
    assert "the create of IPPolicy/office was interrupted and may still take effect" in result.err
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1
    assert sum(request["method"] == "POST" and request["path"] == "/ip_policies" for request in sandbox.log()) == 1


def test_an_undelivered_token_is_replaced_once_its_credential_is_visible(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.write("reconciler.yaml", "stack: prod\nlimits: {settle_seconds: 6}\n")
    on_sandbox.declare(credential())
    kill_while_sending(on_sandbox, sandbox, "POST /credentials")
    assert on_sandbox(*APPLY).code == 0
    (only,) = sandbox.get("/credentials")["credentials"]
    assert (on_sandbox.root / "secrets/agent").read_text().startswith(only["id"].partition("_")[2])


def test_a_duplicate_visible_after_the_settle_time_is_deleted_by_the_next_apply(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.write("reconciler.yaml", "stack: prod\nlimits: {settle_seconds: 0}\n")
    on_sandbox.declare(credential())
    kill_while_sending(on_sandbox, sandbox, "POST /credentials")
    assert on_sandbox(*APPLY).code == 0
    delivered = (on_sandbox.root / "secrets/agent").read_text()
    deadline = time.monotonic() + 60
    while len(sandbox.get("/credentials")["credentials"]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert on_sandbox(*APPLY).code == 0
    (only,) = sandbox.get("/credentials")["credentials"]
    assert delivered.startswith(only["id"].partition("_")[2])
    assert (on_sandbox.root / "secrets/agent").read_text() == delivered

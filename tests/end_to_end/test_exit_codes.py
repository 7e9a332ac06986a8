"""Each exit code, once from a process as a pipeline runs it. That of an interrupt is in `test_interrupted`."""

from __future__ import annotations

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

pytestmark = pytest.mark.usefixtures("over_socket")


def test_exit_code_0_after_an_apply_and_for_a_plan_without_changes(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    assert on_sandbox.process("apply", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_exit_code_1_when_the_manifests_are_invalid(on_sandbox: Project) -> None:
    on_sandbox.declare(resource("IPPolicy", "a", descripton="misspelt"))
    result = on_sandbox.process("plan")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("manifests/all.yaml:1:")


def test_exit_code_2_for_a_plan_with_changes_and_detailed_exitcode(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    assert on_sandbox("plan").code == 0
    assert on_sandbox.process("plan", "--detailed-exitcode").code == 2


def test_exit_code_3_when_the_platform_changed_after_the_plan(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(resource("IPPolicy", "a", description="changed in Git"))
    on_sandbox("plan", "--out", "plan.json")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "changed by hand"})
    sandbox.forget_log()
    result = on_sandbox.process("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out) == (3, "")
    assert result.err == (
        'IPPolicy/a.description: was "a", is now "changed by hand"\n'
        "error: the platform changed after the plan was created; plan again\n"
    )
    assert sandbox.calls() == []


def test_exit_code_4_when_an_approval_is_missing(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(resource("ReservedDomain", "a", domain="a.example.com"))
    on_sandbox("apply", "-y")
    sandbox.forget_log()
    result = on_sandbox.process("destroy", "-y")
    assert result.code == 4
    assert result.err == (
        "blocked: delete:ReservedDomain=1: irreversible: cannot be recovered after deletion\n"
        "error: nothing was changed: approval required: pass --allow delete:ReservedDomain=1\n"
    )
    assert sandbox.calls() == []


def test_exit_code_5_when_some_calls_succeeded_and_some_did_not(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("POST /bot_users", then="status", status=422, body={"msg": "no robots today"})
    on_sandbox.declare(*policies("a"), resource("BotUser", "b", name="b"))
    result = on_sandbox.process("apply", "-y", "--quiet")
    assert (result.code, result.out) == (5, "1 call succeeded, 1 failed, 0 skipped.\n")
    assert result.err == "failed: create BotUser/b: no robots today (status 422)\n"


def test_exit_code_6_when_the_key_is_not_accepted(on_sandbox: Project) -> None:
    on_sandbox.environ["RECONCILER_API_KEY"] = "another"
    result = on_sandbox.process("plan")
    assert (result.code, result.out) == (6, "")
    assert "; check the API key and its permissions" in result.err


def test_exit_code_6_when_the_key_may_read_but_not_change(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("POST *", then="status", status=403, body={"msg": "this key is for reading"}, times=0)
    on_sandbox.declare(*policies("a", "b"))
    result = on_sandbox("apply", "-y")
    assert result.code == 6
    assert "this key is for reading" in result.err


def test_a_key_for_a_part_of_the_account_will_do_for_that_part(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /api_keys", then="status", status=403, body={"msg": "for administrators"}, times=0)
    on_sandbox.declare(*policies("a"))
    result = on_sandbox("apply", "-y")
    assert result.code == 0
    assert "the API key may not read these kinds: APIKey; use a key that may read them" in result.out
    on_sandbox.declare(resource("APIKey", "ci") | {"deliver": {"token": {"to_file": "secrets/ci"}}})
    assert on_sandbox("plan").code == 6


def test_exit_code_64_when_the_command_line_is_wrong(on_sandbox: Project, sandbox: Sandbox) -> None:
    result = on_sandbox.process("apply")
    assert result.code == 64
    assert result.err == "error: stdin is not a terminal; pass --auto-approve to apply without confirmation\n"
    assert sandbox.log() == []

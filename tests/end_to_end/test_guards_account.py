"""A stack belongs to one account: another address, or one with nothing of the stack left in it, needs approval."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from reconciler.testing import Sandbox as InProcess
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, policies


@pytest.fixture
def elsewhere() -> Iterator[Sandbox]:
    """A second account, empty."""
    with InProcess(host="elsewhere") as second:
        yield second


@pytest.fixture
def applied(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Three policies, all there."""
    on_sandbox.declare(*policies("a", "b", "c"))
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    sandbox.forget_log()
    return on_sandbox


def quietly(project: Project, *words: str) -> Output:
    return project(*words, "-y", "--quiet")


def expect_blocked(why: str) -> Output:
    return Output(
        4,
        "",
        f"blocked: account:*=1: {why}\nerror: nothing was changed: approval required: pass --allow account:*=1\n",
    )


def test_another_account_is_refused_until_it_is_allowed(applied: Project, sandbox: Sandbox, elsewhere: Sandbox) -> None:
    applied.use(elsewhere)
    assert quietly(applied, "apply") == expect_blocked(
        f"stack prod belongs to {sandbox.base_url}, but the current account is {elsewhere.base_url}, "
        "and none of the 3 objects of its last apply exists"
    )
    assert elsewhere.calls() == []
    assert quietly(applied, "apply", "--allow", "account:*=1") == Output(0, "Applied: 3 created.\n", "")
    assert quietly(applied, "apply").code == 0
    applied.use(sandbox)
    assert quietly(applied, "destroy").code == 4


def test_a_plan_of_another_account_reports_the_required_approval(
    applied: Project, sandbox: Sandbox, elsewhere: Sandbox
) -> None:
    applied.use(elsewhere)
    result = applied("plan")
    assert result.code == 0
    assert f"Approval required: pass --allow account:*=1\n      stack prod belongs to {sandbox.base_url}" in result.out


def test_an_account_with_none_of_the_stack_s_objects_needs_approval(applied: Project, sandbox: Sandbox) -> None:
    """The public platform has one address for all accounts: only the key differs."""
    sandbox.reset()
    assert quietly(applied, "apply") == expect_blocked(
        f"stack prod belongs to {sandbox.base_url}, but none of the 3 objects of its last apply exists: "
        "the API key may belong to another account"
    )
    assert quietly(applied, "apply", "--allow", "account:*=1").code == 0


def test_one_remaining_object_proves_that_the_account_is_the_same(applied: Project, sandbox: Sandbox) -> None:
    for policy in sandbox.get("/ip_policies")["ip_policies"][1:]:
        sandbox.delete(f"/ip_policies/{policy['id']}")
    assert quietly(applied, "apply") == Output(0, "Applied: 2 created.\n", "")


@pytest.mark.usefixtures("over_socket")
def test_the_same_account_under_another_address_is_the_same(applied: Project, sandbox: Sandbox) -> None:
    applied.environ["RECONCILER_BASE_URL"] = sandbox.base_url.replace("127.0.0.1", "localhost")
    applied.declare(*policies("a", "b", "c", "d"))
    assert quietly(applied, "apply") == Output(0, "Applied: 1 created.\n", "")


def test_two_objects_may_both_have_been_deleted_by_hand(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a", "b"))
    quietly(on_sandbox, "apply")
    sandbox.reset()
    assert quietly(on_sandbox, "apply") == Output(0, "Applied: 2 created.\n", "")


def test_objects_deleted_by_the_stack_need_no_approval_of_the_account(applied: Project, sandbox: Sandbox) -> None:
    assert quietly(applied, "destroy").code == 0
    assert quietly(applied, "apply") == Output(0, "Applied: 3 created.\n", "")


@pytest.mark.usefixtures("over_socket")
def test_objects_deleted_by_a_killed_destroy_need_no_approval_of_the_account(
    applied: Project, sandbox: Sandbox
) -> None:
    sandbox.fault("DELETE /ip_policies/*", nth=3, then="commit-then-hang")
    process = applied.start("destroy", "-y", "--quiet", "--parallelism", "1")
    while sandbox.get("/ip_policies")["ip_policies"]:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert quietly(applied, "apply") == Output(0, "Applied: 3 created.\n", "")


def test_a_destroy_without_calls_needs_no_approval_of_the_account(
    applied: Project, sandbox: Sandbox, elsewhere: Sandbox
) -> None:
    applied.use(elsewhere)
    assert quietly(applied, "destroy").code == 0
    applied.use(sandbox)
    assert quietly(applied, "apply").code == 0


def test_an_incomplete_list_does_not_mean_another_account(applied: Project, sandbox: Sandbox, no_waiting: None) -> None:
    sandbox.fault("GET /ip_policies", then="status", times=0, status=500)
    assert "account" not in quietly(applied, "apply").err


def test_a_new_store_needs_no_approval_of_the_account(applied: Project, elsewhere: Sandbox) -> None:
    applied.use(elsewhere)
    applied.environ["RECONCILER_STORE"] = "state/elsewhere.db"
    assert quietly(applied, "apply").code == 0


def test_the_apply_of_a_plan_file_needs_the_same_approval(applied: Project, sandbox: Sandbox) -> None:
    applied.declare(*policies("a", "b", "c", "d"))
    sandbox.reset()
    applied("plan", "--out", "plan.json")
    assert quietly(applied, "apply", "plan.json").code == 4
    assert quietly(applied, "apply", "plan.json", "--allow", "account:*=1").code == 0

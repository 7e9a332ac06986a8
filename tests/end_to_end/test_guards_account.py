"""A stack belongs to one account: another address, or one with nothing of the stack left in it, needs consent."""

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


def blocked(why: str) -> Output:
    return Output(
        4,
        "",
        f"blocked: account:*=1: {why}\nerror: nothing was changed: approval required: pass --allow account:*=1\n",
    )


def test_another_account_is_refused_until_it_is_allowed(applied: Project, sandbox: Sandbox, elsewhere: Sandbox) -> None:
    applied.use(elsewhere)
    assert quietly(applied, "apply") == blocked(
        f"stack prod belongs to {sandbox.base_url}, but the current account is {elsewhere.base_url}, "
        "and none of the 3 objects of its last apply exists"
    )
    assert elsewhere.calls() == []
    assert quietly(applied, "apply", "--allow", "account:*=1") == Output(0, "Applied: 3 created.\n", "")
    assert quietly(applied, "apply").code == 0
    applied.use(sandbox)
    assert quietly(applied, "destroy").code == 4


def test_a_plan_says_so_too(applied: Project, sandbox: Sandbox, elsewhere: Sandbox) -> None:
    applied.use(elsewhere)
    said = applied("plan")
    assert said.code == 0
    assert f"Approval required: pass --allow account:*=1\n      stack prod belongs to {sandbox.base_url}" in said.out


def test_an_account_without_any_of_what_was_there_is_taken_for_another(applied: Project, sandbox: Sandbox) -> None:
    """The public platform has one address for all accounts: only the key differs."""
    sandbox.reset()
    assert quietly(applied, "apply") == blocked(
        f"stack prod belongs to {sandbox.base_url}, but none of the 3 objects of its last apply exists: "
        "the API key may belong to another account"
    )
    assert quietly(applied, "apply", "--allow", "account:*=1").code == 0


def test_one_object_that_is_left_tells_that_it_is_the_same(applied: Project, sandbox: Sandbox) -> None:
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


def test_what_the_stack_deleted_itself_is_not_missed(applied: Project, sandbox: Sandbox) -> None:
    assert quietly(applied, "destroy").code == 0
    assert quietly(applied, "apply") == Output(0, "Applied: 3 created.\n", "")


@pytest.mark.usefixtures("over_socket")
def test_what_a_killed_destroy_had_deleted_is_not_missed(applied: Project, sandbox: Sandbox) -> None:
    sandbox.fault("DELETE /ip_policies/*", nth=3, then="commit-then-hang")
    process = applied.start("destroy", "-y", "--quiet", "--parallelism", "1")
    while sandbox.get("/ip_policies")["ip_policies"]:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert quietly(applied, "apply") == Output(0, "Applied: 3 created.\n", "")


def test_an_account_in_which_nothing_has_to_be_done_is_not_asked_about(
    applied: Project, sandbox: Sandbox, elsewhere: Sandbox
) -> None:
    applied.use(elsewhere)
    assert quietly(applied, "destroy").code == 0
    applied.use(sandbox)
    assert quietly(applied, "apply").code == 0


def test_a_list_that_cannot_be_read_is_no_reason_for_doubt(
    applied: Project, sandbox: Sandbox, no_waiting: None
) -> None:
    sandbox.fault("GET /ip_policies", then="status", times=0, status=500)
    assert "account" not in quietly(applied, "apply").err


def test_another_store_knows_nothing_and_asks_nothing(applied: Project, elsewhere: Sandbox) -> None:
    applied.use(elsewhere)
    applied.environ["RECONCILER_STORE"] = "state/elsewhere.db"
    assert quietly(applied, "apply").code == 0


def test_a_plan_file_is_held_back_in_the_same_way(applied: Project, sandbox: Sandbox) -> None:
    applied.declare(*policies("a", "b", "c", "d"))
    sandbox.reset()
    applied("plan", "--out", "plan.json")
    assert quietly(applied, "apply", "plan.json").code == 4
    assert quietly(applied, "apply", "plan.json", "--allow", "account:*=1").code == 0

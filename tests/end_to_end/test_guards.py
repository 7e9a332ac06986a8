"""Each guard: what it says, that it exits 4 and sends nothing, and what it takes to be let through."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, policies, resource

DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")
ADDRESS = resource("ReservedAddress", "ledger")
INGRESS = resource("AgentIngress", "connect", domain="connect.example.com")
BOT = resource("BotUser", "robot", name="robot")
OTHER = policies("other")  # so that the manifests are not empty


def quietly(project: Project, *words: str) -> Output:
    return project(*words, "-y", "--quiet")


def apply_declared(project: Project, sandbox: Sandbox, *declared: dict[str, Any]) -> None:
    project.declare(*declared)
    result = quietly(project, "apply")
    assert (result.code, result.err) == (0, ""), result
    sandbox.forget_log()


def expect_blocked(*approvals: tuple[str, str]) -> Output:
    flags = " ".join(f"--allow {flag}" for flag, _ in approvals)
    lines = [f"blocked: {flag}: {why}\n" for flag, why in approvals]
    return Output(4, "", f"{''.join(lines)}error: nothing was changed: approval required: pass {flags}\n")


def check_approval(project: Project, sandbox: Sandbox, flag: str, why: str, done: str) -> None:
    assert quietly(project, "apply") == expect_blocked((flag, why))
    assert sandbox.calls() == []
    assert quietly(project, "apply", "--allow", flag) == Output(0, f"Applied: {done}.\n", "")


# --- irreversible deletions -------------------------------------------------------------------------------------------

GONE = "irreversible: cannot be recovered after deletion"


@pytest.mark.parametrize("declared", [DOMAIN, ADDRESS, INGRESS], ids=lambda item: item["kind"])
def test_an_irreversible_deletion_needs_approval(
    on_sandbox: Project, sandbox: Sandbox, declared: dict[str, Any]
) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, declared)
    on_sandbox.declare(*OTHER)
    check_approval(on_sandbox, sandbox, f"delete:{declared['kind']}=1", GONE, "1 deleted")


@pytest.mark.parametrize(
    ("declared", "why"),
    [(DOMAIN, GONE), (BOT, "this kind has no metadata: ownership is known only from the local store")],
    ids=["domain", "bot"],
)
def test_a_deletion_that_the_manifest_declares_needs_the_same_approval(
    on_sandbox: Project, sandbox: Sandbox, declared: dict[str, Any], why: str
) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, declared)
    on_sandbox.declare(*OTHER, {**declared, "ensure": "absent"})
    check_approval(on_sandbox, sandbox, f"delete:{declared['kind']}=1", why, "1 deleted")


def test_an_approval_for_fewer_deletions_than_planned_approves_nothing(on_sandbox: Project, sandbox: Sandbox) -> None:
    second = resource("ReservedDomain", "shop", domain="shop.example.com")
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN, second)
    on_sandbox.declare(*OTHER)
    refused = expect_blocked(("delete:ReservedDomain=2", GONE))
    assert quietly(on_sandbox, "apply", "--allow", "delete:ReservedDomain=1") == refused
    assert quietly(on_sandbox, "apply", "--allow", "delete:IPPolicy=9") == refused
    assert sandbox.calls() == []


def test_approvals_add_up_over_flags_and_commas(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN, ADDRESS, INGRESS)
    on_sandbox.declare(*OTHER)
    flags = ("--allow", "delete:ReservedDomain=1, delete:ReservedAddress=1", "--allow", "delete:AgentIngress=1")
    assert quietly(on_sandbox, "apply", *flags) == Output(0, "Applied: 3 deleted.\n", "")


def test_each_of_several_guards_reports_its_reason(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, {**DOMAIN, "lifecycle": {"protect": True}}, ADDRESS, BOT)
    on_sandbox.declare(*OTHER)
    assert quietly(on_sandbox, "apply") == expect_blocked(
        ("delete-protected:ReservedDomain=1", "protected by `lifecycle.protect`"),
        ("delete:ReservedAddress=1", GONE),
        ("delete:BotUser=1", "this kind has no metadata: ownership is known only from the local store"),
    )


def test_a_destroy_with_an_irreversible_deletion_needs_approval(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN)
    assert quietly(on_sandbox, "destroy") == expect_blocked(("delete:ReservedDomain=1", GONE))
    allowed = quietly(on_sandbox, "destroy", "--allow", "delete:ReservedDomain=1")
    assert allowed == Output(0, "Destroyed: 2 deleted.\n", "")


# --- protection -------------------------------------------------------------------------------------------------------


def test_an_object_remains_protected_after_its_manifest_is_deleted(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, {**policies("a")[0], "lifecycle": {"protect": True}})
    on_sandbox.declare(*OTHER)
    flag = "delete-protected:IPPolicy=1"
    check_approval(on_sandbox, sandbox, flag, "protected by `lifecycle.protect`", "1 deleted")


def test_protection_holds_against_another_checkout_with_a_store_of_its_own(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, {**policies("a")[0], "lifecycle": {"protect": True}})
    on_sandbox.declare(*OTHER)
    on_sandbox.environ["RECONCILER_STORE"] = "state/another.db"
    assert quietly(on_sandbox, "apply").code == 4
    assert quietly(on_sandbox, "destroy").code == 4


def test_protection_removed_in_git_is_removed_by_the_next_apply(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, {**policies("a")[0], "lifecycle": {"protect": True}})
    apply_declared(on_sandbox, sandbox, *OTHER, *policies("a"))
    apply_declared(on_sandbox, sandbox, *OTHER)


# --- shares -----------------------------------------------------------------------------------------------------------

TEN = [f"n{number}" for number in range(10)]


def test_three_of_ten_may_be_deleted(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *policies(*TEN))
    on_sandbox.declare(*policies(*TEN[3:]))
    assert quietly(on_sandbox, "apply") == Output(0, "Applied: 3 deleted.\n", "")


def test_four_of_ten_may_not_be_deleted(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *policies(*TEN))
    on_sandbox.declare(*policies(*TEN[4:]))
    why = "more than 30 % of the 10 objects of this stack"
    check_approval(on_sandbox, sandbox, "delete:*=4", why, "4 deleted")


def test_four_of_ten_may_not_change(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *policies(*TEN))
    changed = [resource("IPPolicy", name, description="changed") for name in TEN[:4]]
    on_sandbox.declare(*policies(*TEN[4:]), *changed)
    why = "more than 30 % of the 10 objects of this stack"
    check_approval(on_sandbox, sandbox, "update:*=4", why, "4 updated")


def test_unmanaged_objects_do_not_reduce_the_share_of_deletions(on_sandbox: Project, sandbox: Sandbox) -> None:
    for number in range(20):
        sandbox.post("/ip_policies", {"description": f"by hand {number}"})
    apply_declared(on_sandbox, sandbox, *policies(*TEN))
    on_sandbox.declare(*policies(*TEN[4:]))
    assert quietly(on_sandbox, "apply").code == 4


def test_the_project_file_sets_the_largest_share_of_deletions(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *policies(*TEN))
    config = on_sandbox.root / "reconciler.yaml"
    config.write_text(config.read_text() + "guards: {max_delete_percent: 40}\n")
    on_sandbox.declare(*policies(*TEN[4:]))
    assert quietly(on_sandbox, "apply").code == 0


# --- nothing declared -------------------------------------------------------------------------------------------------


def test_an_empty_tree_is_taken_for_a_mistake(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *policies("a", "b"))
    on_sandbox.write("manifests/all.yaml", "")
    why = "the manifests declare no resource, but the stack owns objects"
    check_approval(on_sandbox, sandbox, "empty:*=2", why, "2 deleted")


def test_an_empty_tree_of_a_stack_that_owns_nothing_is_none(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.post("/ip_policies", {"description": "by hand"})
    assert quietly(on_sandbox, "apply").code == 0


# --- adoption ---------------------------------------------------------------------------------------------------------

FOUND = "already exists and is not managed by any stack"


def test_an_existing_unmanaged_object_is_adopted_only_with_approval(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.post("/reserved_domains", {"domain": "pay.example.com"})
    sandbox.forget_log()
    on_sandbox.declare(DOMAIN)
    check_approval(on_sandbox, sandbox, "adopt:ReservedDomain=1", FOUND, "1 adopted")


@pytest.mark.parametrize("words", [("--adopt",), ()])
def test_an_adoption_is_approved_by_a_flag_or_in_git(
    on_sandbox: Project, sandbox: Sandbox, words: tuple[str, ...]
) -> None:
    sandbox.post("/reserved_domains", {"domain": "pay.example.com"})
    on_sandbox.declare(DOMAIN if words else {**DOMAIN, "lifecycle": {"adopt": True}})
    assert quietly(on_sandbox, "apply", *words) == Output(0, "Applied: 1 adopted.\n", "")


# --- in plans and files -----------------------------------------------------------------------------------------------


def test_a_plan_prints_missing_and_passed_approvals(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN)
    on_sandbox.declare(*OTHER)
    asking = "{} --allow delete:ReservedDomain=1\n      irreversible: cannot be recovered after deletion\n"
    assert asking.format("Approval required: pass") in on_sandbox("plan").out
    assert asking.format("Approved:") in on_sandbox("plan", "--allow", "delete:ReservedDomain=1").out


def test_an_approval_is_passed_to_the_plan_or_to_the_apply_of_its_file(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN)
    on_sandbox.declare(*OTHER)
    on_sandbox("plan", "--out", "plan.json")
    assert quietly(on_sandbox, "apply", "plan.json") == expect_blocked(("delete:ReservedDomain=1", GONE))
    on_sandbox("plan", "--out", "agreed.json", "--allow", "delete:ReservedDomain=1")
    assert quietly(on_sandbox, "apply", "agreed.json").code == 0
    apply_declared(on_sandbox, sandbox, *OTHER, DOMAIN)
    on_sandbox.declare(*OTHER)
    on_sandbox("plan", "--out", "plan.json")
    assert quietly(on_sandbox, "apply", "plan.json", "--allow", "delete:ReservedDomain=1").code == 0


# --- the arguments of --allow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("delete", "'delete' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:ReservedDomain", "'delete:ReservedDomain' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:ReservedDomain=-1", "'delete:ReservedDomain=-1' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:ReservedDomain=all", "'delete:ReservedDomain=all' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:ReservedDomain=²", "'delete:ReservedDomain=²' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:BotUser=1,", "'' is not RULE:KIND=N, as in delete:ReservedDomain=1"),
        ("delete:BotUser=0", "'delete:BotUser=0' has a count of zero; use at least 1, as in delete:BotUser=1"),
        (
            "destroy:BotUser=1",
            "'destroy:BotUser=1' names an unknown rule; use one of "
            "delete, delete-protected, create, adopt, overwrite, update, empty, account, widens_access, "
            "locks_out, exposes, irreversible, "
            "leaves_dns_record, interrupts_traffic, runs_command, issues_credential, disables_agent, "
            "loosens_rule, changes_where_it_applies",
        ),
        (
            "delete:ReservedDomian=1",
            "'delete:ReservedDomian=1' names an unknown kind; did you mean delete:ReservedDomain=1?",
        ),
        ("delete:X=1", "'delete:X=1' names an unknown kind; `reconciler kinds` lists all kinds"),
        ("adopt:*=3", "'adopt:*=3' needs a kind instead of `*`, as in adopt:TLSEdge=3"),
        ("empty:IPPolicy=3", "'empty:IPPolicy=3' cannot be limited to a kind; use empty:*=3"),
    ],
)
def test_a_malformed_approval_is_a_usage_error_with_an_example(
    on_sandbox: Project, sandbox: Sandbox, given: str, message: str
) -> None:
    answer = on_sandbox("plan", "--allow", given)
    assert (answer.code, answer.out) == (64, "")
    assert answer.err.splitlines()[0] == f"error: invalid value for '--allow': {message}"
    assert sandbox.log() == []

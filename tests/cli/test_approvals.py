"""A pipeline names the resources that need approval, and prints the entries of `approvals.yaml` that give it."""

from __future__ import annotations

import pytest

from reconciler.cli.terminal.approvals import print_missing
from reconciler.model.plan import Approval, ApprovalItem, Plan

ITEMS = (ApprovalItem("ReservedDomain/a", "rd_1", "0a"), ApprovalItem("ReservedDomain/b", "rd_2", "0b"))
NAMED = Approval("delete", "ReservedDomain", 2, "irreversible", items=ITEMS)
GRANTED = Approval("adopt", "BotUser", 1, "exists", granted=True)


def test_the_resources_are_named_with_the_reason_and_their_entries(capsys: pytest.CaptureFixture[str]) -> None:
    print_missing(Plan("prod", approvals=(GRANTED, NAMED), environment="prod"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "blocked: ReservedDomain/a, ReservedDomain/b: irreversible",
        "error: approval required: add to approvals.yaml, in a reviewed commit:",
        "approvals:",
    ]
    assert [line for line in lines if "delete" in line] == [f"  - delete: ReservedDomain/{name}" for name in "ab"]
    assert not [line for line in lines if "--allow" in line]


@pytest.mark.parametrize(("number", "named", "rest"), [(10, 10, ""), (11, 10, " and 1 more"), (12, 10, " and 2 more")])
def test_ten_resources_are_named(number: int, named: int, rest: str, capsys: pytest.CaptureFixture[str]) -> None:
    items = tuple(ApprovalItem(f"BotUser/b{place:02}", f"bot_{place}", "0a") for place in range(number))
    print_missing(Plan("prod", approvals=(Approval("delete", "BotUser", number, "deletes", items=items),)))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("blocked: ")]
    assert line == f"blocked: {', '.join(f'BotUser/b{place:02}' for place in range(named))}{rest}: deletes"


def test_an_approval_that_git_cannot_give_is_left_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_missing(Plan("prod", approvals=(Approval("account", "*", 1, "another account"),)))
    assert capsys.readouterr().err == (
        "blocked: account: another account\n"
        "error: approval required that approvals.yaml cannot give: apply at a terminal with --allow account:*=1\n"
    )

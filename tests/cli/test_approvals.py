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


def test_an_approval_that_git_cannot_give_is_left_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_missing(Plan("prod", approvals=(Approval("account", "*", 1, "another account"),)))
    assert capsys.readouterr().err == (
        "blocked: account: another account\n"
        "error: approval required that approvals.yaml cannot give: apply at a terminal with --allow account:*=1\n"
    )

"""What needs a person: a sentence for each error, approval, risk and change of access."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Plan
from reconciler.model.problem import Problem
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.rendering.plan.needs import Need, headline, list_needs
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.overview import build_overview
from tests.rendering.crowded import CROWDED
from tests.rendering.plans import OF_A_BRANCH, REVIEWED, WHOLE, plans
from tests.rendering.test_text import compare

DOMAIN = Address("ReservedDomain", "old")
ROUTE = Address("HTTPSEdgeRoute", "admin")
GONE = Change(DOMAIN, Action.DELETE, Reason.REMOVED, id="rd_1", risks=(Risk.IRREVERSIBLE, Risk.LEAVES_DNS_RECORD))
DELETE = Approval(
    "delete",
    "ReservedDomain",
    1,
    "irreversible: cannot be recovered after deletion",
    items=(ApprovalItem(str(DOMAIN), "rd_1", "3f2a"),),
)
PLACE = "https://shop.example.com/admin…"
OPENED = AccessChange(
    PLACE, Verdict.WIDENS, "203.0.113.0/24", "everyone", "`GET /admin` from 192.0.2.1", True, (str(ROUTE),), "77aa"
)
WIDENED = Approval("widens_access", "*", 1, "widens access", items=(ApprovalItem(PLACE, "", "77aa"),))


def needs_of(plan: Plan) -> list[Need]:
    return list_needs(build_outline(plan), str)


def test_a_deletion_that_needs_approval_is_one_thing_with_its_other_risks() -> None:
    plan = Plan("prod", changes=(GONE,), approvals=(DELETE,))
    (need,) = needs_of(plan)
    assert need.text == ("Deletion of ReservedDomain/old cannot be undone, and another account may take the name.")
    assert need.details == (
        "Deletion of ReservedDomain/old leaves a DNS record that leads nowhere: others may take the name over.",
    )
    assert need.is_required
    assert headline([need]) == "1 thing needs you"


def test_an_approved_deletion_is_no_need() -> None:
    needs = needs_of(Plan("prod", changes=(GONE,), approvals=(replace(DELETE, granted=True),)))
    assert needs == []
    assert headline(needs) == "Nothing needs you"


def test_widened_access_is_a_sentence_with_who_gets_through_whether_or_not_it_needs_approval() -> None:
    for approvals in ((), (WIDENED,)):
        (need,) = needs_of(Plan("prod", access=(OPENED,), approvals=approvals))
        assert need.text == f"{PLACE} will let in requests that are refused today: 203.0.113.0/24 → everyone."
        assert need.details == ("For example: GET /admin from 192.0.2.1",)
        assert need.changes == ("HTTPSEdgeRoute/admin",)
        assert need.is_required == bool(approvals)


def test_access_that_is_uncertain_is_reported_as_uncertain() -> None:
    unknown = replace(OPENED, is_certain=False, depends_on=("not read: IPPolicyRule",))
    (need,) = needs_of(Plan("prod", access=(unknown,)))
    assert need.text.startswith(f"{PLACE} may let in requests that are refused today, which is uncertain")
    assert need.details[-1] == "Depends on: not read: IPPolicyRule"


def test_narrowed_access_and_harmless_changes_are_no_needs() -> None:
    narrowed = replace(OPENED, verdict=Verdict.NARROWS)
    change = Change(ROUTE, Action.UPDATE, Reason.FIELDS, risks=(Risk.ISSUES_CREDENTIAL,))
    assert needs_of(Plan("prod", access=(narrowed,), changes=(change,))) == []


def test_risks_of_one_sort_are_one_thing_with_the_changes_that_have_it() -> None:
    edges = [
        Change(Address("TLSEdge", name), Action.UPDATE, Reason.FIELDS, risks=(Risk.INTERRUPTS_TRAFFIC,))
        for name in "abcde"
    ]
    (need,) = needs_of(Plan("prod", changes=tuple(edges)))
    assert need.text == "Update of TLSEdge/a, TLSEdge/b, TLSEdge/c and 2 more interrupts live traffic."
    assert need.changes == tuple(f"TLSEdge/{name}" for name in "abcde")
    assert not need.is_required


def test_errors_come_first_and_count_once() -> None:
    problems = tuple(Problem(f"is wrong {number}", "correct it", "TLSEdge/a", code="invalid-value") for number in "12")
    first, second = needs_of(Plan("prod", problems=problems, access=(OPENED,)))
    assert first.text == "2 errors have to be corrected, listed below."
    assert second.text.startswith(PLACE)
    assert headline([first, second]) == "2 things need you"


def test_a_rule_that_the_branch_loosens_names_who_has_to_approve_it() -> None:
    rule = RuleChange(RuleRisk.LOOSENS, "guards", "guards.require_approval", ["widens_access"], [], "55ee")
    items = (ApprovalItem("guards.require_approval", "", "55ee"),)
    approval = Approval(str(RuleRisk.LOOSENS), "guards", 1, "this branch loosens a rule", items=items)
    (need,) = needs_of(Plan("prod", rule_changes=(rule,), approvals=(approval,)))
    assert need.text == 'This branch loosens a rule: guards.require_approval: ["widens_access"] → [].'
    assert need.details[0].startswith("A reviewer of the base has to approve it")


def test_drift_is_no_need_of_the_review_of_a_branch() -> None:
    drifted = replace(OPENED, cause=Cause.DRIFT)
    assert needs_of(replace(OF_A_BRANCH, access=(drifted,), approvals=(), problems=())) == []


@given(plans)
def test_each_missing_approval_is_a_need(plan: Plan) -> None:
    needs = needs_of(plan)
    assert sum(need.is_required for need in needs) >= bool(plan.missing_approvals) + bool(plan.errors)
    assert [need.is_required for need in needs] == sorted((need.is_required for need in needs), reverse=True)


def test_a_missing_approval_of_access_without_its_row_is_still_a_need() -> None:
    (need,) = needs_of(replace(REVIEWED, access=(), changes=(), additions=()))
    assert need.text == "Change of https://pay.example.com widens access."


@pytest.mark.parametrize(
    ("why", "is_of_all", "text"),
    [
        ("irreversible: cannot be recovered after deletion", False, " cannot be undone"),
        ("irreversible: cannot be recovered after deletion", True, ": irreversible: cannot be recovered"),
        ("more than 20 % of them", False, ": more than 20 % of them."),
        ("more than 20 % of them", True, ": more than 20 % of them."),
    ],
)
def test_an_approval_of_all_changes_has_the_reason_of_its_rule(why: str, is_of_all: bool, text: str) -> None:
    items = (ApprovalItem("*", "", "1"),) if is_of_all else DELETE.items
    (need, *_) = needs_of(Plan("prod", changes=(GONE,), approvals=(replace(DELETE, why=why, items=items),)))
    assert text in need.text


def test_the_needs_of_plans_are_as_reviewed() -> None:
    several = [replace(plan, environment=f"e{place}") for place, plan in enumerate((CROWDED, REVIEWED, WHOLE))]
    found = {
        "crowded": build_outline(CROWDED),
        "crowded without a base": build_outline(replace(CROWDED, base=None)),
        "crowded without approvals": build_outline(replace(CROWDED, approvals=())),
        "whole": build_outline(WHOLE),
        "together": build_overview(several).rows,
    }
    lines = []
    for name, rows in found.items():
        listed = list_needs(rows, "«{}»".format)
        lines += [f"{name}: {headline(listed)}"]
        lines += [
            f"  {need.text} {need.details} {need.changes} {need.more} severe {need.is_severe} "
            f"required {need.is_required} {need.environments} {need.access is not None}"
            for need in listed
        ]
    compare("needs.txt", "".join(f"{line}\n" for line in lines))


def test_an_approval_is_about_the_entry_points_with_its_risk() -> None:
    def change(verdict: Verdict, *places: str) -> tuple[AccessChange, ...]:
        return tuple(AccessChange(f"https://{place}", verdict, "a", "b", "", True, (), "") for place in places)

    items = (ApprovalItem("https://a", "", "d"), ApprovalItem("https://b", "", "d"))
    asked = Approval("widens_access", "*", 2, "widens access", items=items)
    access = (*change(Verdict.WIDENS, "a", "b"), *change(Verdict.LOCKS_OUT, "b"), *change(Verdict.WIDENS, "c"))
    separate = (*access[:3], replace(access[3], after="c"))
    found = list_needs(build_outline(Plan("prod", access=separate, approvals=(asked,))), str)
    assert [(need.text.split(" ")[0], need.is_required) for need in found] == [
        ("https://a,", True),
        ("https://b", False),
        ("https://c", False),
    ]


@pytest.mark.parametrize(("number", "text"), [(1, "An error has"), (2, "2 errors have"), (1234, "1,234 errors have")])
def test_errors_are_one_need(number: int, text: str) -> None:
    wrong = tuple(Problem(f"wrong {place}", code="x") for place in range(number))
    (need,) = list_needs(build_outline(Plan("prod", problems=wrong)), str)
    assert need == Need(f"{text} to be corrected, listed below.", is_severe=True, is_required=True)
    assert list_needs(build_outline(Plan("prod")), str) == []


@pytest.mark.parametrize(
    ("number", "words"), [(1, "will be a new way in"), (2, "will be new ways in"), (4, "and 1 more will be")]
)
def test_several_new_ways_in_are_one_need(number: int, words: str) -> None:
    access = tuple(AccessChange(f"https://{n}", Verdict.EXPOSES, "a", "b", "", True, (), "") for n in range(number))
    (need,) = list_needs(build_outline(Plan("prod", access=access)), str)
    assert words in need.text
    assert need.more == (("https://3",) if number == 4 else ())

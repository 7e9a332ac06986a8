"""One comment for several environments: a table, then each change once; any plans fit, and foreign text is escaped."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, FieldChange, Reason, Risk
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, ApprovalItem, Base, Call, Forecast, Plan, Verb
from reconciler.model.problem import Problem
from reconciler.rendering.plan.markdown import render_markdown
from reconciler.rendering.plan.overview_markdown import render_overview
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.plans import BEHIND, plans
from tests.rendering.shop import PRODUCTION, STAGING
from tests.rendering.test_markdown import large, structure
from tests.rendering.test_text import compare
from tests.security.test_orders import orders_in

LEGACY, ADMIN, OFFICE = (
    Address("ReservedDomain", "legacy"),
    Address("HTTPSEdgeRoute", "admin"),
    Address("IPPolicy", "a"),
)
CREDENTIAL = Address("TunnelCredential", "rome")


def plan_of(environment: str, *more: Change) -> Plan:
    """A pull request that opens a route and deletes a domain, in one of its environments."""
    host, short = f"{environment}.example.com", environment[:1]
    gone = FieldChange("domain", f"legacy.{host}", None, cause=Cause.THIS_CHANGE)
    opened = FieldChange("ip_restriction.ip_policy_ids", [f"ipp_{short}"], None, cause=Cause.THIS_CHANGE)
    items = (ApprovalItem("ReservedDomain/legacy", f"rd_{short}", f"0a{short}"),)
    opens = (ApprovalItem(f"https://{host}/admin…", "", f"0b{short}"),)
    return Plan(
        f"shop-{environment}",
        access=(
            AccessChange(f"https://{host}/admin…", Verdict.WIDENS, "office", "everyone", f"GET https://{host}/admin/",
                         True, (str(ADMIN),), f"0b{short}", cause=Cause.THIS_CHANGE),
        ),
        changes=(
            Change(LEGACY, Action.DELETE, Reason.REMOVED, id=f"rd_{short}", fields=(gone,), cause=Cause.THIS_CHANGE,
                   risks=(Risk.IRREVERSIBLE, Risk.INTERRUPTS_TRAFFIC)),
            Change(ADMIN, Action.UPDATE, Reason.FIELDS, id=f"edghtsrt_{short}", fields=(opened,),
                   cause=Cause.THIS_CHANGE, risks=(Risk.WIDENS_ACCESS,)),
            *more,
        ),
        approvals=(
            Approval("delete", "ReservedDomain", 1, "irreversible: cannot be recovered after deletion", items=items),
            Approval("widens_access", "*", 1, "widens access", items=opens),
        ),
        names={f"ipp_{short}": "IPPolicy/office"},
        environment=environment,
        account="https://api.example.com",
        commit="0123456789abcdef",
        created=1_700_000_000.0,
        base=Base("origin/main", "abcdef0123456789"),
        forecast=Forecast(2, 0.0),
    )  # fmt: skip


DRIFT = Change(
    OFFICE,
    Action.UPDATE,
    Reason.FIELDS,
    id="ipp_9",
    fields=(FieldChange("description", "by hand", "Office", cause=Cause.DRIFT),),
    cause=Cause.DRIFT,
)


def test_a_pull_request_of_two_environments_is_a_table_and_each_change_once() -> None:
    compare("overview.md", render_overview([plan_of("staging"), plan_of("prod", DRIFT)], ["dev"]))


def test_the_documentation_shows_this_comment() -> None:
    page = render_overview([plan_of("staging"), plan_of("prod", DRIFT)], ["dev"])
    text = (Path(__file__).parents[2] / "docs/outputs.md").read_text(encoding="utf-8")
    for begin, end in (
        ("| environment |", "\n\nCompared with"),
        ("- ⚠️ **lets in", "\n\n### ⚠️ Risks"),
        ("<details>\n<summary><code>-</code>", "\n\n<details>\n<summary><code>~</code>"),
    ):
        assert page[page.index(begin) : page.index(end)] in text


def test_a_line_without_an_environment_is_about_all_of_them() -> None:
    page = render_overview([plan_of("staging"), plan_of("prod", DRIFT)])
    assert "\nLines that name no environment apply to both.\n" in page
    assert "- ✋ **required**: `ReservedDomain/legacy`: `irreversible: cannot be recovered after deletion`\n" in page
    assert page.count("<summary><code>~</code> <code>HTTPSEdgeRoute/admin</code> update · ") == 1
    assert "<code>IPPolicy/a</code> update (<code>prod</code>)" in page


def test_an_environment_that_was_not_planned_is_unknown_and_nothing_is_about_all() -> None:
    page = render_overview([plan_of("prod")], ["staging"])
    assert "## Plan for 1 of 2 environments\n" in page
    assert "| `staging` | ❔ **not planned**; see the log | unknown | unknown | unknown | unknown |\n" in page
    assert "Lines that name no environment" not in page
    assert "<code>HTTPSEdgeRoute/admin</code> update (<code>prod</code>)" in page
    assert render_overview([], ["staging"]).startswith("## No environment could be planned\n")


def test_review_output_names_approvals_yaml_and_no_flag() -> None:
    account = replace(plan_of("dev"), approvals=(Approval("account", "*", 1, "another account"),))
    page = render_overview([plan_of("staging"), account])
    assert "--allow" not in page
    assert "account (`dev`): `another account` (cannot be approved in `approvals.yaml`; apply it at a terminal)" in page


def test_an_environment_that_is_behind_its_base_is_named_with_the_reason() -> None:
    page = render_overview([plan_of("staging"), replace(BEHIND, environment="prod")])
    assert "⚠️ **This branch is behind `origin/main` by 2 commits: changes are not attributed; " in page
    assert "merge `origin/main` first.** (`prod`)\n" in page


def test_errors_and_commands_of_one_environment_are_shown_with_it() -> None:
    def plan_with_command(environment: str, *command: str) -> Plan:
        change = Change(CREDENTIAL, Action.CREATE, Reason.DECLARED, risks=(Risk.RUNS_COMMAND, Risk.ISSUES_CREDENTIAL))
        delivery = Delivery("to_command", command[0], settings={"run": list(command)})
        call = Call("create", CREDENTIAL, Verb.CREATE, "/credentials", deliver={"token": delivery})
        return Plan(f"s-{environment}", changes=(change,), calls=(call,), environment=environment)

    wrong = replace(plan_with_command("prod", "vault", "put", "prod"), problems=(Problem("is invalid", code="x"),))
    page = render_overview([plan_with_command("staging", "vault", "put", "staging"), wrong])
    assert "- ❌ `is invalid` (`prod`)\n" in page
    risks = page.partition("### ⚠️ Risks")[2].partition("###")[0]
    assert all(f"put {name}` (`{name}`)\n" in risks for name in ("staging", "prod"))


def test_a_large_request_is_cut_with_counts_deletions_last() -> None:
    several = [replace(large(300), environment=name) for name in ("staging", "prod")]
    page = render_overview(several, limit=8_000)
    assert len(page) <= 8_000
    assert "changes omitted" in page
    assert "deletions omitted" not in page
    assert page.count("TLSEdge/shop-0`") == 2  # as a risk, and as a change


@given(hostile.texts)
@settings(max_examples=examples(30))
def test_foreign_text_changes_no_structure_of_several_plans(text: str) -> None:
    def page(content: str) -> str:
        several = [replace(hostile.plan(f"{content}{end}"), environment=f"{content}{end}") for end in "ab"]
        return render_overview(several, [f"{content}c"])

    assert structure(page(text)) == structure(page(hostile.harmless(text)))
    assert orders_in(page(text)) == []


@given(st.lists(hostile.many, min_size=2, max_size=3))
@settings(max_examples=examples(20))
def test_any_plans_fit_the_limit_together(several: list[Plan]) -> None:
    named = [replace(plan, environment=f"env-{number}") for number, plan in enumerate(several)]
    assert len(render_overview(named, limit=12_000)) <= 12_000


@given(st.lists(plans, min_size=2, max_size=2))
@settings(max_examples=examples(8))
def test_several_plans_show_no_secret(several: list[Plan]) -> None:
    page = render_overview([replace(plan, environment=f"env-{number}") for number, plan in enumerate(several)])
    assert "hunter2" not in page
    assert "correct horse" not in page


@pytest.mark.parametrize(
    ("number", "more"), [(49, []), (50, []), (51, ["1 more environment"]), (52, ["2 more environments"])]
)
def test_fifty_environments_are_in_the_table(number: int, more: list[str]) -> None:
    page = render_overview([Plan("prod", environment=f"e{place}") for place in range(number)])
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| environment", "| -"))
    ]
    assert [row.split(" | ")[0].removeprefix("| … ") for row in rows[50:]] == more
    assert len(rows) == min(number, 50) + len(more)


@pytest.mark.parametrize("length", [299, 300, 301, 302])
def test_long_targets_are_cut_and_objects_without_an_owner_are_counted(length: int) -> None:
    one = replace(STAGING, targets=("T" * length,), unmanaged=(("BotUser", "bot_1"),))
    text = render_overview([one, PRODUCTION])
    assert f"Targets: `{'T' * length if length <= 300 else 'T' * 299 + '…'}`" in text
    assert text.count("- Not managed: 1 `BotUser`") == 1


def test_facts_that_no_plan_has_are_left_out() -> None:
    facts = {"account": "https://a", "commit": "c0ffee", "targets": ("T",), "excludes": ("E",)}
    names = {"account": "Account: ", "commit": "Commit: ", "targets": "Targets: ", "excludes": "Excluded: "}
    for some in ({}, facts, *({name: value} for name, value in facts.items())):
        page = render_overview([Plan("s", environment=name, **some) for name in ("a", "b")])  # type: ignore[arg-type]
        assert [name for name, text in names.items() if text in page] == list(some)
        assert "Compared with" not in page
        assert "(`a`" not in page  # a fact of all is labelled with none


@pytest.mark.parametrize("number", [1, 7, 8, 9, 10])
def test_eight_entry_points_of_a_line_are_named(number: int) -> None:
    access = tuple(
        AccessChange(f"https://h{n}", Verdict.WIDENS, "a", "b", "", True, (), "", cause=None) for n in range(number)
    )
    page = render_overview([Plan("s", environment=name, access=access) for name in ("a", "b")])
    names = ", ".join(f"`https://h{n}`" for n in range(min(number, 8)))
    rest = f" and {number - 8} more" if number > 8 else ""
    assert f"- ⚠️ **lets in requests that were refused**: {names}{rest}\n" in page


@pytest.mark.parametrize("number", [1, 3, 4])
def test_an_approval_of_many_entry_points_names_none_of_them(number: int) -> None:
    items = tuple(ApprovalItem(f"https://h{n}", "", "d") for n in range(number))
    page = render_markdown(Plan("s", approvals=(Approval("widens_access", "*", number, "widens access", items=items),)))
    names = ", ".join(f"`https://h{n}`" for n in range(number)) if number < 4 else f"{number} entry points under Access"
    assert f"- ✋ **required**: {names}: `widens access`\n" in page

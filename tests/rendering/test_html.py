"""The HTML page of a plan: one file with foreign text escaped. `test_browser` tests its behavior."""

from __future__ import annotations

import base64
import hashlib
import html
import operator
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, FieldChange, Reason, Risk
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.plan import Base, Call, Observed, Plan, Request, Verb
from reconciler.model.problem import Problem, Severity
from reconciler.model.value import Ref
from reconciler.operations.run_context import read_run_context
from reconciler.rendering.html import diagram, plan_page
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.run_context import Link, RunContext
from reconciler.rendering.text_tools import count
from tests.harness.golden import compare_golden
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.crowded import CROWDED, list_access, list_problems
from tests.rendering.html_outline import outline
from tests.rendering.plans import CONTEXT, OF_A_BRANCH, PAYMENTS, REVIEWED, WHOLE, list_ways_in, plans
from tests.rendering.shop import PRODUCTION, STAGING
from tests.security.test_orders import orders_in


class Tags(HTMLParser):
    """Elements with the names of their attributes, without `code`, since foreign text may contain backticks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.structure: list[object] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag, attrs) != ("code", []):
            self.structure.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag != "code":
            self.structure.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.structure.append("comment")


@given(hostile.texts)
@settings(max_examples=examples(60))
def test_foreign_text_changes_no_structure(text: str) -> None:
    bad, good = (Tags(plan_page.render_page(hostile.plan(content))) for content in (text, hostile.harmless(text)))
    assert bad.structure == good.structure
    assert bad.links == good.links


@given(hostile.texts)
@settings(max_examples=examples(20))
def test_foreign_text_changes_no_structure_of_the_page_of_several_plans(text: str) -> None:
    def render(content: str) -> Tags:
        return Tags(
            plan_page.render_overview([hostile.plan(content), replace(WHOLE, stack="web")], unplanned=[content])
        )

    bad, good = render(text), render(hostile.harmless(text))
    assert bad.structure == good.structure
    assert bad.links == good.links


@given(plans)
@settings(max_examples=examples(30))
def test_the_page_has_no_secret_and_no_workflow_command(plan: Plan) -> None:
    page = plan_page.render_page(plan)
    assert "hunter2" not in page
    assert "correct horse" not in page
    assert orders_in(page) == []


ILL = [
    HealthRow(str(PAYMENTS), "e_1", Health(State.DEGRADED, "the certificate waits for DNS", "set a CNAME", Actor.YOU)),
    HealthRow("FailoverBackend/payments", "b_1", Health(State.PROGRESSING, "no agent is connected")),
    HealthRow("IPPolicy/office", "p_1", Health(State.HEALTHY)),
]
PAGES: Mapping[str, Callable[[], str]] = {
    "plan": lambda: plan_page.render_page(WHOLE, digest="blake2b:0a1b", budget=120, resources=30),
    "drift": lambda: plan_page.render_page(WHOLE, flavour=Flavour.DRIFT, health=ILL),
    "review": lambda: plan_page.render_page(REVIEWED, entries=list_ways_in(8), context=CONTEXT, health=ILL),
    "crowded": lambda: plan_page.render_page(CROWDED),
    "crowded-drift": lambda: plan_page.render_page(CROWDED, flavour=Flavour.DRIFT, entries=list_ways_in(3)),
    "overview": lambda: plan_page.render_overview(
        [STAGING, PRODUCTION, replace(CROWDED, environment="test")], unplanned=["qa"], context=CONTEXT, digests=["a"]
    ),
    "empty": lambda: plan_page.render_page(Plan("prod"), resources=2),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_expected_elements(name: str) -> None:
    compare_golden(Path(__file__).parent / "pages" / f"page-{name}.txt", outline(PAGES[name]()))


def test_a_page_has_no_blanks_that_its_templates_have() -> None:
    page = PAGES["empty"]()
    markup = re.sub(r"<(style|script)>.*?</\1>", r"<\1>", re.sub("'?sha256-[^&]*", "sha256-…", page), flags=re.DOTALL)
    compare_golden(Path(__file__).parent / "pages" / "page-empty.html", markup)


@pytest.mark.parametrize("number", [500, 501, 502])
def test_five_hundred_rows_of_access_and_problems_are_listed(number: int) -> None:
    access = [replace(row, cause=Cause.PENDING) for row in list_access(number)]
    urgent = [problem for problem in list_problems(2 * number) if problem.severity is not Severity.NOTE]
    page = outline(plan_page.render_page(Plan("prod", access=tuple(access), problems=tuple(urgent[:number]))))
    assert page.count("| caused by IPPolicyRule/rule-") == 500
    more = number - 500
    rows = [line.partition(";")[0].strip() for line in page.splitlines() if "| … and" in line]
    assert rows == [f"| … and {count(more, f'more {noun}')}" for noun in ("problem", "row") if more]


def test_links_lead_to_places_of_the_page() -> None:
    assert all(re.fullmatch(r"#[a-z]+\d*", link) for link in Tags(plan_page.render_page(WHOLE)).links)


def test_only_its_own_style_and_script_are_allowed() -> None:
    page = plan_page.render_page(WHOLE)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    for name in ("style", "script"):
        (inside,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name}-src &#39;sha256-{digest}&#39;" in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;; ")


def test_no_element_has_a_style_or_an_event_handler() -> None:
    names = {name for tag in Tags(plan_page.render_page(WHOLE)).structure if isinstance(tag, tuple) for name in tag[1:]}
    assert not {name for name in names if name == "style" or name.startswith("on")}


def test_the_same_plan_is_the_same_page() -> None:
    turned = replace(WHOLE, observed=dict(reversed(list(WHOLE.observed.items()))))
    assert plan_page.render_page(turned) == plan_page.render_page(WHOLE)


def test_drift_has_neither_calls_nor_risks() -> None:
    page = plan_page.render_page(WHOLE, flavour=Flavour.DRIFT)
    assert "Calls, in order" not in page
    assert "Risks" not in page
    assert "added in Git, not applied yet" in page
    assert "Differences: <code>-</code> on the platform, <code>+</code> in the manifests" in page
    assert "Differences:" not in plan_page.render_page(WHOLE)


# --- structure --------------------------------------------------------------------------------------------------------


def headings(page: str) -> list[str]:
    return [re.sub("<[^>]*>", "", text).strip() for text in re.findall("<h2[^>]*>(.*?)</h2>", page)]


def read_verdict(page: str) -> str:
    """What the header says of the plan."""
    (text,) = re.findall('<p class="verdict [a-z]+">.*?</span>(.*?)</p>', page)
    return html.unescape(text)


def test_needs_of_a_person_come_first_then_the_changes() -> None:
    page = plan_page.render_page(OF_A_BRANCH, context=CONTEXT)
    assert read_verdict(page) == "Approval required"
    assert headings(page) == [
        "1 thing needs you",
        "What will change",
        "Also to know",
        "Added on the platform, not declared",
        "No longer planned",
        "Changes",
        "Dependency graph",
        "Calls, in order (5)",
    ]


def test_other_risks_are_ordered_by_weight_and_only_the_severe_ones_are_red() -> None:
    heavy = replace(OF_A_BRANCH.changes[1], risks=(Risk.DISABLES_AGENT, Risk.WIDENS_ACCESS))
    plan = replace(OF_A_BRANCH, changes=(*OF_A_BRANCH.changes, heavy))
    (section,) = re.findall('<section class="box-list risks".*?</section>', plan_page.render_page(plan), re.DOTALL)
    badges = re.findall(r'<span class="badge (\w+)">(.*?)</span>', section)
    assert badges == [
        ("severe", "widens access"),
        ("mild", "disables agents"),
        ("severe", "interrupts live traffic"),
        ("mild", "runs a command"),
        ("mild", "issues a one-time secret"),
        ("mild", "issues a one-time secret"),
        ("mild", "protected (lifecycle.protect)"),
    ]


def test_the_other_risks_of_a_change_are_listed_beside_its_need() -> None:
    risky = Change(DOMAIN, Action.DELETE, Reason.REMOVED, risks=(Risk.IRREVERSIBLE, Risk.DISABLES_AGENT))
    page = plan_page.render_page(Plan("prod", changes=(risky,)))
    assert headings(page)[0] == "1 thing needs you"
    (section,) = re.findall('<section class="box-list risks".*?</section>', page, re.DOTALL)
    assert re.findall(r'<span class="badge (\w+)">(.*?)</span>', section) == [("mild", "disables agents")]


def test_text_in_backticks_is_shown_as_code() -> None:
    problem = Problem("is <b> wrong", "run `reconciler fmt`", "TLSEdge/a", code="invalid-value")
    plan = replace(WHOLE, problems=(problem,))
    page = plan_page.render_page(plan)
    assert "TLSEdge/a: is &lt;b&gt; wrong; run <code>reconciler fmt</code>" in page
    assert "run <code>reconciler import</code>" in page
    visible = re.sub('<(script|style).*?</(script|style)>|<pre.*?</pre>|data-words=".*?"', "", page, flags=re.DOTALL)
    assert "`" not in re.sub("<b>`x`", "", html.unescape(visible))


def test_the_values_of_an_unchanged_addition_have_no_minus_sign() -> None:
    for flavour in Flavour:
        page = plan_page.render_page(WHOLE, flavour=flavour)
        (section,) = re.findall('<section class="box-list additions".*?</section>', page, re.DOTALL)
        assert re.findall('<span class="([a-z]+)"><i>(.*?)</i>', section) == [("context", " ")]


def test_notes_come_last() -> None:
    note = Problem("this plan has no such change", "it can stay", severity=Severity.NOTE, code="unused-approval")
    page = plan_page.render_page(replace(WHOLE, problems=(note,)))
    assert headings(page)[-1] == "Notes"
    assert "Problems" not in headings(page)


def test_a_module_that_is_removed_is_not_shown_as_if_it_were_set() -> None:
    fields = (FieldChange("mutual_tls", {"enabled": True}, None), FieldChange("ip_restriction", None, {"on": 1}))
    plan = Plan("prod", changes=(Change(Address("TLSEdge", "a"), Action.UPDATE, Reason.FIELDS, fields=fields),))
    page = html.unescape(plan_page.render_page(plan))
    assert "mutual_tls: {enabled: true} → (not set), ip_restriction: (not set) → {on: 1}" in page


def test_entries_of_approvals_yaml_can_be_copied() -> None:
    page = plan_page.render_page(replace(OF_A_BRANCH, environment="production"), context=CONTEXT)
    (entries,) = re.findall('<pre id="entries"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert html.unescape(entries) == (
        "approvals:\n  - delete: ReservedDomain/old\n    env: production\n"
        '    id: "rd_1"\n    until: "2023-11-28"\n    digest: "3f2a9c"\n'
    )
    assert "entries" not in [*re.findall('id="([a-z]+)"', plan_page.render_page(WHOLE))]


def test_the_header_has_environment_request_commit_and_author_and_the_footer_has_the_digest() -> None:
    page = plan_page.render_page(OF_A_BRANCH, digest="blake2b:0123", context=CONTEXT)
    header, footer = re.findall('<dl class="about">(.*?)</dl>', page, re.DOTALL)
    about, foot = (re.findall("<dt>(.*?)</dt><dd>(?:<a [^>]*>)?(.*?)</", part) for part in (header, footer))
    assert about == [
        ("Request", "#42"),
        ("Commit", "0123456789ab"),
        ("Base", "origin/main (abcdef0)"),
        ("Author", "mara"),
        ("Account", "https://api.example.com"),
    ]
    assert foot == [("Created", "2023-11-14 22:13 UTC"), ("Run", "Plan 99"), ("Digest", "blake2b:0123")]
    assert '<span class="word">environment </span>production</span>' in page
    assert [link for link in Tags(page).links if not link.startswith("#")] == [
        "https://github.com/octo/infra/pull/42",
        "https://github.com/octo/infra/commit/0123456789abcdef",
        "https://github.com/octo/infra/actions/runs/99",
    ]


@given(hostile.texts)
@settings(max_examples=examples(30))
def test_a_link_leads_to_a_web_address_only(text: str) -> None:
    variables = {
        "GITHUB_ACTIONS": text or "x",
        "GITHUB_SERVER_URL": text,
        "GITHUB_REPOSITORY": f"o/{text}",
        "GITHUB_ACTOR": text,
        "GITHUB_REF": "refs/pull/1/merge",
        "GITHUB_RUN_ID": text,
        "GITHUB_WORKFLOW": text,
    }
    page = plan_page.render_page(WHOLE, context=read_run_context(variables, environment=text, commit=text))
    assert all(re.fullmatch(r"#[a-z]+\d*|https?://[\w.:-]+(/[\w./~%?=&#+-]*)?", link) for link in Tags(page).links)
    assert not {tag[0] for tag in Tags(page).structure if isinstance(tag, tuple)} & {"img", "iframe", "h5"}


def test_a_branch_behind_its_base_or_with_an_invalid_base_is_reported_in_the_status() -> None:
    problem = Problem("is not valid YAML", "correct it", "manifests/a.yaml", code="invalid-yaml")
    for base, text in (
        (
            Base("main", "abc", behind=3),
            "This branch is behind main by 3 commits: changes are not attributed; merge main first.",
        ),
        (
            Base("main", "abc", problems=(problem,)),
            "The base main (abc) cannot be planned: changes are not attributed.",
        ),
    ):
        page = plan_page.render_page(replace(OF_A_BRANCH, base=base))
        assert page.index(text) < page.index('id="h-summary"')
        assert headings(page)[0] == "2 things need you"
        assert "<h3>" not in page
        assert '<option value="cause">' not in page


def test_several_plans_are_one_page_with_a_row_for_each_and_each_change_once() -> None:
    page = plan_page.render_overview([STAGING, PRODUCTION], unplanned=["dev"])
    assert read_verdict(page) == "Not planned (1 of 3)"
    assert headings(page)[:3] == ["Environments", "3 things need you", "What will change"]
    assert re.findall(r"<td><b>(.*?)</b></td>", page) == ["staging", "production", "dev"]
    addresses = re.findall(r'<b class="address"><span class="kind">(.*?)</span>(.*?)</b>', page)
    assert len(addresses) == len(set(addresses)) == 6


def test_a_change_names_its_users() -> None:
    page = plan_page.render_page(PRODUCTION)
    assert '<span class="users">used by 3</span>' in page
    users = "<code>IPPolicy/office</code>, <code>HTTPSEdgeRoute/shop-admin</code>, <code>HTTPSEdge/shop</code>"
    assert f"Used by 3 resources: {users}." in page


def test_long_values_are_summed_up_by_the_parts_that_differ() -> None:
    fields = (FieldChange("metadata", "x" * 300 + " before", "x" * 300 + " after"),)
    page = plan_page.render_page(
        Plan("prod", changes=(Change(EDGE, Action.UPDATE, Reason.FIELDS, id="edgtls_1", fields=fields),))
    )
    (brief,) = re.findall('<span class="brief">(.*?)</span>', page)
    assert re.fullmatch(r'metadata: …x+ before" → …x+ after"', html.unescape(brief))


def test_a_delete_shows_what_is_deleted() -> None:
    change = Change(DOMAIN, Action.DELETE, Reason.REMOVED, identity={"domain": "pay.example.com"})
    page = plan_page.render_page(Plan("prod", changes=(change,)))
    assert '<span class="brief">domain: &#34;pay.example.com&#34;</span>' in page


def test_a_branch_without_changes_is_reported_despite_drift() -> None:
    changes = tuple(change for change in OF_A_BRANCH.changes if change.cause is not Cause.THIS_CHANGE)
    page = plan_page.render_page(replace(OF_A_BRANCH, changes=changes, approvals=()))
    assert read_verdict(page) == "No changes by this branch"
    assert headings(page)[0] == "Nothing needs you"
    assert "Pending before it: 2 to replace, 1 to delete, 1 to move." in page


ERROR = Problem("it is wrong", "mend it", "IPPolicy/a", code="invalid-value")
CONFINED = replace(ERROR, confined=True, subject="IPPolicy/b")
PLANNED = replace(WHOLE, problems=(), approvals=(), additions=())
ADDED = tuple(replace(change, cause=Cause.THIS_CHANGE) for change in WHOLE.additions)
FOREIGN = tuple(change for change in OF_A_BRANCH.changes if change.cause is not Cause.THIS_CHANGE)
STATES: Mapping[str, Plan] = {
    "empty": Plan("prod"),
    "planned": PLANNED,
    "an error": replace(PLANNED, problems=(ERROR, CONFINED)),
    "errors that are equal": Plan("prod", problems=(ERROR, replace(ERROR, subject="IPPolicy/c"))),
    "two errors": Plan("prod", problems=(ERROR, replace(ERROR, text="it is odd", code="unknown-field"))),
    "a confined error": replace(PLANNED, problems=(CONFINED,)),
    "approvals": replace(PLANNED, approvals=WHOLE.approvals, problems=(CONFINED,)),
    "approvals and an error": replace(PLANNED, approvals=WHOLE.approvals, problems=(ERROR,)),
    "a warning": replace(PLANNED, problems=(replace(ERROR, severity=Severity.WARNING),)),
    "of a branch": replace(OF_A_BRANCH, approvals=()),
    "nothing of a branch": replace(OF_A_BRANCH, approvals=(), changes=FOREIGN),
    "additions of a branch": replace(OF_A_BRANCH, approvals=(), changes=FOREIGN, additions=ADDED),
    "nothing but drift of a branch": replace(OF_A_BRANCH, approvals=(), changes=()),
    "access": replace(Plan("prod"), access=REVIEWED.access),
    "pending only": replace(Plan("prod"), changes=tuple(replace(change, is_pending=True) for change in WHOLE.changes)),
}


def test_a_plan_in_every_state_has_the_expected_status() -> None:
    lines = []
    for name, plan in STATES.items():
        for flavour, budget, resources in ((Flavour.PLAN, 0, None), (Flavour.PLAN, 60, 7), (Flavour.DRIFT, 0, 7)):
            status = plan_page._status(plan, build_outline(plan), flavour, resources, budget)
            lines.append(f"{name}, {flavour}: {status.level}, {status.text}\n")
            lines += [f"    {detail}\n" for detail in status.details]
    compare_golden(Path(__file__).parent / "pages" / "verdicts.txt", "".join(lines))


def read_brief(number: int, length: int) -> str:
    """The line that sums up a change of so many fields with values of this length."""
    fields = tuple(FieldChange(f"f{place}", None, "x" * length) for place in range(number))
    (card,) = plan_page.build_cards(build_outline(Plan("prod", changes=(change(EDGE, Action.UPDATE),))), Flavour.PLAN)
    assert card.summary == card.reason
    changed = replace(change(EDGE, Action.UPDATE), fields=fields)
    (card,) = plan_page.build_cards(build_outline(Plan("prod", changes=(changed,))), Flavour.PLAN)
    return card.summary


@pytest.mark.parametrize(
    ("number", "ending"),
    [(2, 'f1: (not set) → "x"'), (3, 'f2: (not set) → "x"'), (4, ", and 1 more field"), (5, ", and 2 more fields")],
)
def test_three_fields_of_a_change_are_summed_up(number: int, ending: str) -> None:
    assert read_brief(number, 1).endswith(ending)
    assert read_brief(number, 1).count('"x"') == min(number, 3)


def test_a_long_value_that_is_set_or_removed_is_summed_up_from_its_beginning() -> None:
    for old, new, start in (("x" * 200, None, 'f: "xxx'), (None, "x" * 200, 'f: (not set) → "xxx')):
        changed = replace(change(EDGE, Action.UPDATE), fields=(FieldChange("f", old, new),))
        (card,) = plan_page.build_cards(build_outline(Plan("prod", changes=(changed,))), Flavour.PLAN)
        assert card.summary.startswith(start)


@pytest.mark.parametrize("length", [141, 142, 143, 400])
def test_the_line_that_sums_up_a_change_is_cut(length: int) -> None:
    brief = read_brief(1, length)
    assert len(brief) == min(160, length + 18)
    assert brief.endswith("…") is (length > 142)


def test_a_page_without_any_plan_has_no_time_of_creation() -> None:
    page = plan_page.render_overview([], unplanned=["dev"])
    assert read_verdict(page) == "Not planned"
    assert "Created" not in page


def test_the_address_of_a_run_is_empty_if_it_is_not_known() -> None:
    contexts = (RunContext(), RunContext(run=Link("Plan")), RunContext(run=Link("Plan", "https://ci.example.com/7")))
    assert [context.run_address for context in contexts] == ["", "", "https://ci.example.com/7"]


def test_a_page_of_several_plans_names_the_request_that_one_of_them_has() -> None:
    asked = Request("octo/infra", 7, "main", "abc")
    page = plan_page.render_overview([STAGING, replace(PRODUCTION, request=asked), PRODUCTION])
    assert "octo/infra#7" in page


def test_a_field_with_another_cause_than_its_change_shows_it() -> None:
    first = OF_A_BRANCH.changes[1]
    fields = (replace(first.fields[0], cause=Cause.THIS_CHANGE), *first.fields[1:])
    page = plan_page.render_page(replace(OF_A_BRANCH, changes=(replace(first, fields=fields),)))
    assert page.count('<span class="note">by this branch</span>') == 1


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_color_has_enough_contrast_in_both_themes() -> None:
    style = re.search("<style>(.*?)</style>", plan_page.render_page(WHOLE), re.DOTALL)
    assert style
    themes = re.findall(r":root \{(.*?)\}", style[1], re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", theme))
        pairs = [(name, ground) for name in ("ink", "faint", "link") for ground in ("paper", "raised")]
        pairs += [(name.removesuffix("-bg"), name) for name in colours if name.endswith("-bg")]
        pairs += [(name.removesuffix("-bg"), "raised") for name in colours if name.endswith("-bg")]
        pairs.append(("on-severe", "severe"))
        for name, ground in pairs:
            low, high = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{name} on {ground}"


# --- the diagram ------------------------------------------------------------------------------------------------------

POLICY, RULE, EDGE, DOMAIN = (
    Address(*name.split("/")) for name in ("IPPolicy/p", "IPPolicyRule/r", "TLSEdge/e", "ReservedDomain/d")
)


def change(address: Address, action: Action, *values: object) -> Change:
    return Change(
        address,
        action,
        Reason.FIELDS,
        fields=tuple(FieldChange(f"f{n}", None, value) for n, value in enumerate(values)),
    )


def edges(plan: Plan, *, waits: bool = False) -> set[tuple[str, str]]:
    drawn = diagram.draw_diagram(plan)
    return {
        (str(drawn.boxes[arrow.start].address), str(drawn.boxes[arrow.end].address))
        for arrow in drawn.arrows
        if arrow.is_wait is waits
    }


def test_arrows_follow_references_and_ids_of_observed_objects() -> None:
    plan = Plan(
        "prod",
        changes=(change(POLICY, Action.CREATE), change(RULE, Action.CREATE, {"a": [Ref(POLICY)]}, "rd_1")),
        observed={DOMAIN: Observed("rd_1", {})},
    )
    assert edges(plan) == {("IPPolicy/p", "IPPolicyRule/r"), ("ReservedDomain/d", "IPPolicyRule/r")}


def test_an_unchanged_resource_that_is_referred_to_is_drawn_as_unchanged() -> None:
    plan = Plan("prod", changes=(change(RULE, Action.UPDATE, Ref(POLICY)),))
    assert [(str(box.address), box.change) for box in diagram.draw_diagram(plan).boxes] == [
        ("IPPolicy/p", None),
        ("IPPolicyRule/r", 0),
    ]


def calls(*chain: Address) -> tuple[Call, ...]:
    """A create call for each address, which waits for the one before."""
    return tuple(
        Call(f"create {address}", address, Verb.CREATE, "/x", needs=(f"create {before}",) if before else ())
        for before, address in zip((None, *chain), chain, strict=False)
    )


def test_a_reference_is_drawn_although_a_wait_implies_it() -> None:
    plan = Plan(
        "prod",
        changes=(
            change(POLICY, Action.CREATE),
            change(RULE, Action.CREATE, Ref(POLICY)),
            change(EDGE, Action.CREATE, [Ref(POLICY)]),
        ),
        calls=calls(POLICY, RULE, EDGE),
    )
    assert edges(plan) == {("IPPolicy/p", "IPPolicyRule/r"), ("IPPolicy/p", "TLSEdge/e")}
    assert edges(plan, waits=True) == {("IPPolicyRule/r", "TLSEdge/e")}


def test_a_wait_that_others_imply_is_omitted() -> None:
    made = tuple(change(address, Action.CREATE) for address in (DOMAIN, POLICY, EDGE))
    last = Call("last", EDGE, Verb.CREATE, "/x", needs=(f"create {POLICY}", f"create {DOMAIN}"))
    plan = Plan("prod", changes=made, calls=(*calls(DOMAIN, POLICY), last))
    assert edges(plan, waits=True) == {("ReservedDomain/d", "IPPolicy/p"), ("IPPolicy/p", "TLSEdge/e")}


def test_a_delete_has_arrows_for_its_former_references_and_otherwise_waits() -> None:
    plan = Plan(
        "prod",
        changes=(change(DOMAIN, Action.DELETE), change(EDGE, Action.DELETE), change(POLICY, Action.DELETE)),
        calls=(
            Call("delete e", EDGE, Verb.DELETE, "/e"),
            Call("delete d", DOMAIN, Verb.DELETE, "/d", needs=("delete e",)),
            Call("delete p", POLICY, Verb.DELETE, "/p", needs=("delete e",)),
        ),
        observed={
            POLICY: Observed("ipp_1", {}),
            EDGE: Observed("edgtls_1", {"ip_restriction": {"ip_policy_ids": ["ipp_1"]}}),
        },
    )
    assert edges(plan) == {("IPPolicy/p", "TLSEdge/e")}
    assert edges(plan, waits=True) == {("TLSEdge/e", "ReservedDomain/d")}


def points(path: str) -> list[tuple[float, float]]:
    """Points along an arrow, whose path consists of M, C and H commands."""
    found: list[tuple[float, float]] = []
    for letter, rest in re.findall(r"([MCH])([^MCH]*)", path):
        numbers = [float(number) for number in rest.split()]
        if letter == "M":
            found.append((numbers[0], numbers[1]))
            continue
        x, y = found[-1]
        corners = numbers if letter == "C" else [x, y, numbers[0], y, numbers[0], y]
        for step in range(1, 41):
            at = step / 40
            parts = (1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3
            xs, ys = (x, *corners[::2]), (y, *corners[1::2])
            found.append((sum(map(operator.mul, parts, xs)), sum(map(operator.mul, parts, ys))))
    return found


def test_a_long_arrow_passes_between_boxes() -> None:
    chain = tuple(Address("IPPolicy", f"p{number}") for number in range(4))
    many = tuple(Address("IPPolicyRule", f"r{number:02}") for number in range(24))  # a column that is split
    plan = Plan(
        "prod",
        changes=(
            change(chain[0], Action.CREATE),
            *(change(address, Action.CREATE, Ref(before)) for before, address in pairwise(chain)),
            *(change(address, Action.CREATE, Ref(chain[0])) for address in many),
            change(EDGE, Action.CREATE, *(Ref(address) for address in (*chain, *many))),
        ),
    )
    drawn = diagram.draw_diagram(plan)
    for arrow in drawn.arrows:
        others = [box for number, box in enumerate(drawn.boxes) if number not in (arrow.start, arrow.end)]
        for x, y in points(arrow.path):
            for box in others:
                assert not (0 < x - box.x < diagram.WIDTH and 0 < y - box.y < diagram.HEIGHT), (arrow, box)


@given(plans)
@settings(max_examples=examples(30))
def test_boxes_do_not_overlap_and_are_within_the_diagram(plan: Plan) -> None:
    drawn = diagram.draw_diagram(plan)
    places = [(box.x, box.y) for box in drawn.boxes]
    for number, (x, y) in enumerate(places):
        assert 0 <= x <= drawn.width - diagram.WIDTH
        assert 0 <= y <= drawn.height - diagram.HEIGHT
        for other_x, other_y in places[:number]:
            assert abs(x - other_x) >= diagram.WIDTH or abs(y - other_y) >= diagram.HEIGHT


@pytest.mark.parametrize(("number", "drawn"), [(1500, 1500), (1501, 0)])
def test_a_diagram_of_too_many_resources_is_omitted(number: int, drawn: int) -> None:
    policies = (Address("IPPolicy", str(place)) for place in range(number))
    plan = Plan("prod", changes=tuple(change(policy, Action.CREATE) for policy in policies))
    assert len(diagram.draw_diagram(plan).boxes) == drawn

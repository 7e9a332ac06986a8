"""The HTML pages in a real Chromium: with mouse and keyboard, in dark mode and on a narrow screen.

Not part of `make test`. Skipped where there is no Chromium, unless RECONCILER_TEST_BROWSER is set: `make test-browser`.
With RECONCILER_SCREENSHOTS=DIR every page is saved there as a picture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.access_entry import AccessEntry
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.event import Outcome
from reconciler.model.fleet import TaskState
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening, Past, Run
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.status import Due, StackStatus, Sync, Synced
from reconciler.model.value import Ref
from reconciler.rendering.fleet.rollup import RollUp
from reconciler.rendering.html import fleet_page, plan_page, report_page, status_page
from tests.harness import browser
from tests.harness.browser import Browser
from tests.harness.statuses import NOW, build_status
from tests.rendering import fleets, hostile
from tests.rendering.plans import CONTEXT, OF_A_BRANCH, REVIEWED, WHOLE, list_ways_in
from tests.rendering.shop import CONTEXT as SHOP_CONTEXT
from tests.rendering.shop import PRODUCTION, STAGING

pytestmark = pytest.mark.browser
DAY = 86400.0
WIDTHS = (390, 768, 1280)
STACKED = "[...document.querySelectorAll('table.stacked')]"  # their cells are below each other on a narrow screen


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = browser.program()
    if program is None:
        if os.environ.get("RECONCILER_TEST_BROWSER"):
            pytest.fail("Chromium is not installed")
        pytest.skip("Chromium is not installed; run `make test-browser`")
    running = Browser(program)
    yield running
    running.stop()


def many(number: int) -> Plan:
    """Policies with their rules, and edges that refer to them."""
    changes, calls = [], []
    for place in range(number // 3):
        policy, rule, edge = (Address(kind, f"shop-{place}") for kind in ("IPPolicy", "IPPolicyRule", "TLSEdge"))
        fields = (FieldChange("ip_policy_id", None, Ref(policy), ChangedBy.GIT),)
        changes += [
            Change(policy, Action.CREATE, Reason.DECLARED),
            Change(rule, Action.CREATE, Reason.DECLARED, fields=fields),
            Change(
                edge,
                Action.UPDATE,
                Reason.FIELDS,
                fields=fields,
                risks=(Risk.INTERRUPTS_TRAFFIC,) if place % 9 == 0 else (),
            ),
        ]
        calls += [Call(f"create {at}", at, Verb.CREATE, f"/{at.kind}") for at in (policy, rule, edge)]
    return Plan("prod", changes=tuple(changes), calls=tuple(calls))


def large_fleet() -> RollUp:
    """A run over 10,000 members, in which every tenth fails."""
    failed = (TaskState.SUCCEEDED,) * 9 + (TaskState.FAILED,)
    tasks = [
        fleets.task(place, failed[place % 10], digest=fleets.WIDE if place % 4 == 0 else fleets.PLAIN)
        for place in range(1, 10_001)
    ]
    return fleets.roll_up(tasks, fleets.ENDED)


EDGE = Address("TLSEdge", "shop")
SHORT_OPENINGS = (Opening("tls://shop.example.com", Verdict.WIDENS, "203.0.113.0/24", "everyone"),)
LONG_OPENINGS = (
    Opening(
        "https://administration.internal.shop.example.com/settings/users…",
        Verdict.WIDENS,
        "203.0.113.0/24, 198.51.100.0/24, 2001:db8:42::/48",
        "0.0.0.0/0",
        is_certain=False,
    ),
)
DUE = (HealthRow("TLSCertificate/shop", "cert_1", Health(State.HEALTHY, "it expires", due=50 * DAY)),)
ILL = (
    *DUE,
    HealthRow(
        "ReservedDomain/administration-of-the-shop",
        "rd_1",
        Health(
            State.DEGRADED,
            "the certificate waits for DNS",
            "set administration.internal.shop.example.com CNAME 83a500d928a615c06.41d.cname.example.com",
            Actor.ZONE_OWNER,
            due=31 * DAY,
        ),
    ),
    HealthRow("", "edgtls_2ZQbGvLdDUpPUpDlTeUWVVHqSZJ", Health(State.UNKNOWN, "its list could not be read")),
)
PROGRESSING = HealthRow(
    "TunnelGroupBackend/web",
    "bkdtg_1",
    Health(
        State.PROGRESSING,
        "no tunnel with the labels app=web, color=blue, region=eu-central-1 is open",
        "start an agent that opens a tunnel with the labels app=web, color=blue, region=eu-central-1",
        Actor.AGENT,
    ),
)
CHANGED = ("TLSEdge/payments", "ReservedDomain/old", "TunnelCredential/rome")
"""Resources of the plan WHOLE."""


def describe_stack(*rows: HealthRow) -> StackStatus:
    """A stack with drift, changes that were not applied, and dates."""
    sync = Sync(Synced.DRIFT, NOW, drifted=("IPPolicy/office", "TLSEdge/payments"), pending=CHANGED)
    dates = (
        Due(NOW + DAY, "TLSCertificate/administration-of-the-shop", "expires"),
        Due(NOW + 2 * DAY, "AgentIngress/connect-to-the-administration-of-the-shop", "is renewed by the platform"),
    )
    return build_status(*rows, sync=sync, dates=dates)


def describe_hostile_stack(text: str) -> StackStatus:
    """A stack in which every text is foreign."""
    states = (State.DEGRADED, State.UNKNOWN, State.PROGRESSING)
    rows = (HealthRow(text, text, Health(state, text, text, Actor.ZONE_OWNER)) for state in states)
    sync = Sync(Synced.DRIFT, NOW, drifted=(text,), pending=(text,), why=text)
    status = build_status(*rows, sync=sync, dates=(Due(NOW, text, text),))
    return replace(status, stack=text, account=text, environment=text)


LOOKS = tuple(
    DriftCheck(
        day * DAY,
        12,
        "0123456789ab",
        (DriftedResource(EDGE, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("description",)),)
        if day > 3 and day not in (9, 17)
        else (),
        health=CheckedHealth(40, ILL if day % 9 > 2 else DUE),
        openings=LONG_OPENINGS if day in (4, 5, 20) else SHORT_OPENINGS if day > 25 else (),
    )
    for day in range(1, 30)
)
RUNS = tuple(
    Run("apply", day * DAY, day * DAY + 9, outcome, {Outcome.DONE: day, Outcome.FAILED: day % 2})
    for day, outcome in enumerate(
        ("applied", "partial", "applied", "partial", "blocked", "stale", "failed", "interrupted", "applied")
    )
)


def list_hostile_ways_in() -> list[AccessEntry]:
    """Entry points whose texts are all foreign."""
    text = "".join(hostile.PIECES)
    return [AccessEntry(text, "https", text, 443, text, True, "public", text, True, (text,), (text,), text, text)]


PAGES: dict[str, Callable[[], str]] = {
    "plan": lambda: plan_page.render_page(WHOLE, digest="blake2b:0123", budget=120),
    "branch": lambda: plan_page.render_page(OF_A_BRANCH, digest="blake2b:0123", context=CONTEXT),
    "overview": lambda: plan_page.render_overview([STAGING, PRODUCTION], unplanned=["dev"], context=SHOP_CONTEXT),
    "overview-hostile": lambda: plan_page.render_overview(
        [hostile.plan("".join(hostile.PIECES)), replace(WHOLE, stack="web")], unplanned=["".join(hostile.PIECES)]
    ),
    "plan-health": lambda: plan_page.render_page(
        WHOLE, health=[replace(row, address=name) for row, name in zip((*ILL[1:], PROGRESSING), CHANGED, strict=True)]
    ),
    "large": lambda: plan_page.render_page(many(300)),
    "chain": lambda: plan_page.render_page(chain()),
    "hostile": lambda: plan_page.render_page(hostile.plan("".join(hostile.PIECES))),
    "access": lambda: plan_page.render_page(REVIEWED, entries=list_ways_in(320)),
    "access-hostile": lambda: plan_page.render_page(WHOLE, entries=list_hostile_ways_in()),
    "fleet": lambda: fleet_page.render_page(fleets.PLANNED),
    "fleet-stopped": lambda: fleet_page.render_page(fleets.STOPPED),
    "fleet-large": lambda: fleet_page.render_page(large_fleet()),
    "fleet-hostile": lambda: fleet_page.render_page(fleets.hostile_run("".join(hostile.PIECES))),
    "report": lambda: report_page.render_page("prod", Past(LOOKS, RUNS), now=30 * DAY, days=90),
    "status": lambda: status_page.render_page(describe_stack(*ILL, PROGRESSING)),
    "status-healthy": lambda: status_page.render_page(build_status(*DUE)),
    "status-hostile": lambda: status_page.render_page(describe_hostile_stack("".join(hostile.PIECES))),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, page in PAGES.items():
        (folder / f"{name}.html").write_text(page(), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


def visible_addresses(chromium: Browser) -> list[str]:
    """The addresses of the visible changes."""
    visible = "[...document.querySelectorAll('.card')].filter(c => !c.hidden)"
    found = chromium.evaluate(f"{visible}.map(c => c.querySelector('.address').textContent)")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_nothing_from_outside_and_fits_every_width(
    chromium: Browser, pages: dict[str, Path], name: str
) -> None:
    folder = os.environ.get("RECONCILER_SCREENSHOTS")
    for dark in (False, True):
        for width in WIDTHS:
            chromium.open(pages[name], width=width, dark=dark)
            assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            if width == min(WIDTHS):
                assert chromium.evaluate(f"{STACKED}.every(table => table.scrollWidth <= innerWidth)"), width
            assert chromium.asked == [pages[name].as_uri()]
            assert chromium.complaints == []
            if name.startswith("access"):
                chromium.click("#tab-entry-points")
                chromium.evaluate("document.querySelectorAll('.entry').forEach((entry, n) => { entry.open = n < 2; })")
                assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            if folder:
                chromium.screenshot(Path(folder, f"{name}-{width}-{'dark' if dark else 'light'}.png"))


def test_foreign_text_runs_no_script_and_creates_no_element(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["hostile"])
    chromium.click("#tab-dependencies")
    chromium.click("#b0")
    assert (
        chromium.evaluate("document.querySelectorAll('img, script:not(body > script:last-child), iframe').length") == 0
    )
    assert "</script>" in chromium.evaluate("document.body.textContent")
    assert chromium.complaints == []


def test_the_page_of_a_plan_shows_why_a_changed_resource_does_not_work(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["plan-health"])
    chromium.evaluate("document.querySelectorAll('.card').forEach(card => { card.open = true; })")
    for row in (ILL[1], PROGRESSING):
        assert row.health.reason in chromium.evaluate("document.body.innerText")
    chromium.press("/")
    chromium.write("waits for dns")
    assert visible_addresses(chromium) == [CHANGED[0]]


def test_the_page_of_a_status_shows_who_acts_and_no_foreign_element(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["status"])
    text = chromium.evaluate("document.body.innerText")
    for row in (*ILL[1:], PROGRESSING):
        assert row.health.reason in text
        assert row.health.advice in text
    elements = "document.querySelectorAll('img, script, iframe').length"
    own = chromium.evaluate(elements)
    chromium.open(pages["status-hostile"])
    assert chromium.evaluate(elements) == own
    assert "</script>" in chromium.evaluate("document.body.textContent")
    assert chromium.complaints == []


def test_the_page_is_dark_in_dark_mode(chromium: Browser, pages: dict[str, Path]) -> None:
    colours = []
    for dark in (False, True):
        chromium.open(pages["plan"], dark=dark)
        colours.append(chromium.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(247, 248, 250)", "rgb(13, 16, 21)"]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_state_of_the_plan_remains_in_view_with_the_tabs_below_it(
    chromium: Browser, pages: dict[str, Path], width: int
) -> None:
    chromium.open(pages["large"], width=width, height=700)
    chromium.evaluate("scrollTo(0, 6000)")
    box = "document.querySelector('{}').getBoundingClientRect()"
    bar, verdict, tabs = (chromium.evaluate(box.format(part) + ".toJSON()") for part in (".bar", ".verdict", ".tabs"))
    assert bar["top"] == 0
    assert 0 <= verdict["left"] < verdict["right"] <= width
    assert bar["bottom"] <= tabs["top"] + 1 < bar["bottom"] + 10


def test_a_keyboard_and_a_screen_reader_reach_the_needs_of_a_person_before_the_changes(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["overview"])
    order = "[...document.querySelectorAll('a[href], button:not([hidden]), h2')].map(e => e.textContent.trim())"
    names = [name for name in chromium.evaluate(order) if name]
    assert names[0] == "To the content"
    assert names.index("Environments") < names.index("3 things need you") < names.index("HTTPSEdgeRoute/shop-admin")
    assert names.index("copy") < names.index("Changes")
    assert chromium.evaluate("document.querySelectorAll('h1').length") == 1


def test_a_search_shows_the_changes_that_contain_every_word(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    assert len(visible_addresses(chromium)) == 7
    chromium.press("/")
    chromium.write("edge mutual_tls")
    assert visible_addresses(chromium) == ["TLSEdge/payments"]
    assert chromium.evaluate("document.querySelector('#matches').textContent") == "1 of 7 shown"
    chromium.write(" nothing-like-it")
    assert visible_addresses(chromium) == []
    assert not chromium.evaluate("document.querySelector('#none').hidden")


def test_filters_hide_actions_and_changes_without_risks(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    chromium.click("input[data-action=create]")
    assert "IPPolicy/office" not in visible_addresses(chromium)
    chromium.click("#risky")
    assert visible_addresses(chromium) == [
        "CertificateAuthority/partners",
        "ReservedDomain/old",
        "TunnelCredential/rome",
    ]


def test_a_selected_box_shows_its_fields_calls_and_neighbors(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    chromium.click("#tab-dependencies")
    chromium.click(".box[aria-label='update TLSEdge/payments']")
    panel = chromium.evaluate("document.querySelector('#panel').innerText")
    assert "traffic_policy.value" in panel
    assert "PATCH" in panel
    assert "Refers to" in panel
    assert "Runs after" not in panel
    near = chromium.evaluate("[...document.querySelectorAll('.box.near')].map(b => b.getAttribute('aria-label'))")
    assert {"create IPPolicy/office", "unchanged FailoverBackend/payments"} <= set(near)
    chromium.click(".shut")
    assert chromium.evaluate("document.querySelector('#panel').hidden")


def test_a_wait_is_not_shown_as_a_reference(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    chromium.click("#tab-dependencies")
    chromium.click(".box[aria-label='create IPPolicy/office']")
    assert "Runs before" not in chromium.evaluate("document.querySelector('#panel').innerText")
    chromium.click(".box[aria-label='unchanged HTTPSEdgeRoute/api']")
    panel = chromium.evaluate("document.querySelector('#panel').innerText")
    assert "Runs after\nupdate TLSEdge/payments" in panel
    assert "Refers to" not in panel


def test_changes_are_grouped_by_kind_and_by_file(chromium: Browser, pages: dict[str, Path]) -> None:
    def titles(key: str) -> object:
        chromium.evaluate(
            f"(s => {{ s.value = '{key}'; s.dispatchEvent(new Event('change')); }})(document.querySelector('#group'))"
        )
        return chromium.evaluate("[...document.querySelectorAll('.group h3')].map(title => title.textContent)")

    chromium.open(pages["plan"])
    in_order = visible_addresses(chromium)
    assert titles("kind") == [
        "BotUser 1",
        "CertificateAuthority 1",
        "IPPolicy 1",
        "ReservedDomain 1",
        "TLSEdge 1",
        "TunnelCredential 2",
    ]
    assert titles("file") == ["manifests/payments.yaml 5", "not in a file 2"]
    assert titles("") == []
    assert visible_addresses(chromium) == in_order


def test_changes_of_a_branch_are_grouped_by_cause_again(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["branch"])
    titles = "[...document.querySelectorAll('.group h3')].map(title => title.textContent)"
    by_cause = [
        "Changes by this branch 2",
        "Pending before it: in Git, not applied yet 4",
        "Drift: changed on the platform 1",
    ]
    assert chromium.evaluate(titles) == by_cause
    for key in ("", "cause"):
        chromium.evaluate(
            f"(s => {{ s.value = '{key}'; s.dispatchEvent(new Event('change')); }})(document.querySelector('#group'))"
        )
    assert chromium.evaluate(titles) == by_cause


def test_tabs_are_changed_by_keyboard_and_by_links(chromium: Browser, pages: dict[str, Path]) -> None:
    def visible() -> object:
        panels = "[...document.querySelectorAll('[role=tabpanel]')].filter(panel => !panel.hidden)"
        return chromium.evaluate(f"{panels}.map(panel => panel.id)")

    chromium.open(pages["plan"])
    assert visible() == ["changes"]
    chromium.evaluate("document.querySelector('#tab-changes').focus()")
    chromium.press("ArrowRight")
    assert visible() == ["dependencies"]
    chromium.press("ArrowRight")
    assert visible() == ["calls"]
    assert chromium.evaluate("document.activeElement.id") == "tab-calls"
    chromium.click("#calls a")
    chromium.until("document.querySelector('.card[open]').checkVisibility()")
    assert visible() == ["changes"]


def test_the_filter_of_the_graph_shows_matches_and_their_neighbors(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["large"])
    chromium.click("#tab-dependencies")
    whole = chromium.evaluate("document.querySelector('#graph').viewBox.baseVal.height")
    chromium.click("#graph-filter")
    chromium.write("rule/shop-17")
    visible = "[...document.querySelectorAll('.box')].filter(box => box.checkVisibility())"
    assert chromium.evaluate(f"{visible}.map(box => box.getAttribute('aria-label'))") == [
        "create IPPolicy/shop-17",
        "create IPPolicyRule/shop-17",
    ]
    assert chromium.evaluate("document.querySelector('#graph').viewBox.baseVal.height") < whole / 10
    chromium.write(" nothing-like-it")
    assert chromium.evaluate(f"{visible}.length") == 0
    assert not chromium.evaluate("document.querySelector('#graph-none').hidden")


THROUGH_BOXES = """
[...document.querySelectorAll('.arrow')].filter(arrow => arrow.checkVisibility()).flatMap(arrow =>
  [...document.querySelectorAll('.box')]
    .filter(box => box.checkVisibility() && ![arrow.dataset.from, arrow.dataset.to].includes(box.id.slice(1)))
    .filter(box => [...Array(101).keys()].some(part => {
      const { x, y } = arrow.getPointAtLength(arrow.getTotalLength() * part / 100);
      const left = x - Number(box.dataset.x), top = y - Number(box.dataset.y);
      return 0 < left && left < 196 && 0 < top && top < 44;
    }))
    .map(box => box.getAttribute('aria-label')))
"""


def chain() -> Plan:
    """Policies that each refer to the one before, and an edge that refers to all of them."""
    policies = [Address("IPPolicy", f"p{number}") for number in range(6)]
    rules = [Address("IPPolicyRule", f"r{number}") for number in range(12)]
    needs = {
        **dict(zip(policies, [[], *([before] for before in policies)], strict=False)),
        **{rule: [policies[number % 3]] for number, rule in enumerate(rules)},
        EDGE: [*policies, *rules],
    }
    return Plan(
        "prod",
        changes=tuple(
            Change(
                address,
                Action.CREATE,
                Reason.DECLARED,
                fields=tuple(FieldChange(f"f{number}", None, Ref(need)) for number, need in enumerate(found)),
            )
            for address, found in needs.items()
        ),
    )


def test_no_edge_of_the_filtered_graph_passes_through_a_box(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["chain"])
    chromium.click("#tab-dependencies")
    places = "[...document.querySelectorAll('.box')].map(box => [box.dataset.x, box.dataset.y])"
    before = chromium.evaluate(places)
    assert chromium.evaluate(THROUGH_BOXES) == []
    chromium.click("#graph-filter")
    chromium.write("tlsedge")
    assert chromium.evaluate(THROUGH_BOXES) == []
    assert chromium.evaluate(places) != before
    clear = "field.value = ''; field.dispatchEvent(new Event('input'));"
    chromium.evaluate(f"(field => {{ {clear} }})(document.querySelector('#graph-filter'))")
    assert [[int(x), int(y)] for x, y in chromium.evaluate(places)] == [[int(x), int(y)] for x, y in before]


def test_only_a_resource_and_its_neighbors_are_shown(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["large"])
    chromium.click("#tab-dependencies")
    chromium.click(".box[aria-label='create IPPolicy/shop-17']")
    chromium.click(".only")
    visible = "[...document.querySelectorAll('.box')].filter(box => box.checkVisibility())"
    names = f"{visible}.map(box => box.getAttribute('aria-label'))"
    assert chromium.evaluate(names) == [
        "create IPPolicy/shop-17",
        "create IPPolicyRule/shop-17",
        "update TLSEdge/shop-17",
    ]
    assert chromium.evaluate("document.querySelector('#panel h3').textContent") == "create IPPolicy/shop-17"
    chromium.click(".only")
    assert chromium.evaluate(f"{visible}.length") == 300


def test_print_shows_the_changes_and_the_calls(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    chromium.click("#tab-dependencies")
    chromium.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert chromium.evaluate("['changes', 'calls'].every(id => document.getElementById(id).checkVisibility())")
        assert not chromium.evaluate("document.querySelector('.tabs').checkVisibility()")
    finally:
        chromium.send("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("name", ["plan", "overview", "fleet-stopped", "status", "report"])
def test_print_is_light_and_complete_without_cut_tables(chromium: Browser, pages: dict[str, Path], name: str) -> None:
    chromium.open(pages[name], width=718, dark=True)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    chromium.send("Emulation.setEmulatedMedia", media="print", features=[dark])
    try:
        is_unfolded = "[...document.querySelectorAll('details .inside')].every(inside => inside.checkVisibility())"
        assert chromium.evaluate(f"document.querySelectorAll('details:not([open])').length === 0 || {is_unfolded}")
        assert chromium.evaluate("getComputedStyle(document.body).color") == "rgb(21, 25, 31)"
        assert chromium.evaluate("getComputedStyle(document.querySelector('.bar')).position") == "static"
        clipped = "[...document.querySelectorAll('.wide, .brief, .diff, .entries pre')]"
        assert chromium.evaluate(f"{clipped}.filter(box => box.scrollWidth > box.clientWidth + 1).length") == 0
        assert chromium.evaluate("document.documentElement.scrollWidth") <= 718
        badge = "document.querySelector('.badge.severe')"
        assert chromium.evaluate(f"!{badge} || getComputedStyle({badge}).printColorAdjust === 'exact'")
    finally:
        chromium.send("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_panel_of_a_box_is_visible(chromium: Browser, pages: dict[str, Path], width: int) -> None:
    chromium.open(pages["large"], width=width, height=700)
    chromium.click("#tab-dependencies")
    chromium.evaluate("document.querySelector('#graph').scrollIntoView()")
    chromium.click(".box")
    assert chromium.evaluate("document.querySelector('#panel h3').getBoundingClientRect().bottom <= innerHeight")


def test_zoom_to_fit_shows_all_of_a_tall_graph(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["large"])
    chromium.click("#tab-dependencies")
    chromium.click("[data-zoom=fit]")
    assert chromium.evaluate("(each => each.scrollHeight <= each.clientHeight)(document.querySelector('#scroll'))")


def test_the_graph_can_be_used_by_keyboard(chromium: Browser, pages: dict[str, Path]) -> None:
    def get_label() -> object:
        return chromium.evaluate("document.activeElement.getAttribute('aria-label')")

    chromium.open(pages["large"])
    chromium.click("#tab-dependencies")
    chromium.evaluate("document.querySelector('[data-zoom=one]').focus()")
    chromium.press("Tab")
    first = get_label()
    assert str(first).startswith("create IPPolicy/")
    chromium.press("ArrowRight")
    assert get_label() != first
    second = get_label()
    chromium.press("Enter")
    assert not chromium.evaluate("document.querySelector('#panel').hidden")
    assert chromium.evaluate("document.querySelector('#panel h3').textContent") == second
    chromium.press("Escape")
    assert chromium.evaluate("document.querySelector('#panel').hidden")
    assert get_label() == second


def test_a_link_to_a_change_opens_it(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["plan"])
    chromium.click(".needs a")
    opened = "document.querySelector('.card[open] .address').textContent"
    chromium.until(f"{opened} === document.querySelector('.needs a').textContent")
    chromium.evaluate("document.querySelector('.card[open]').open = false")
    chromium.click(".needs a")
    chromium.until("document.querySelector('.card[open]')")


def test_a_large_graph_can_be_zoomed(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["large"])
    chromium.click("#tab-dependencies")
    width = "Number(document.querySelector('#graph').getAttribute('width'))"
    before = chromium.evaluate(width)
    chromium.click("[data-zoom=in]")
    assert chromium.evaluate(width) > before
    chromium.click("[data-zoom=one]")
    assert chromium.evaluate(f"{width} === document.querySelector('#graph').viewBox.baseVal.width")


def test_a_bar_of_the_report_links_to_its_row(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["report"])
    chromium.click(".slot[href='#l28']")
    chromium.until("document.querySelector('#l28').closest('details').open")
    assert chromium.evaluate("document.querySelector('#l28').checkVisibility()")


def test_a_narrow_screen_shows_all_drifted_resources_and_the_latest_bars(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["report"], width=390)
    assert chromium.evaluate(f"{STACKED}.every(table => table.scrollWidth <= innerWidth)")
    seen = "document.querySelector('.chart .slot:last-of-type').getBoundingClientRect().right <= innerWidth"
    assert chromium.evaluate(seen)
    letters = "document.querySelector('.chart text').getBoundingClientRect().height"
    assert chromium.evaluate(letters) >= 9
    rows = "[...document.querySelectorAll('[id^=r]')].map(row => row.getBoundingClientRect().height)"
    assert max(chromium.evaluate(rows)) < 40  # one line each


def test_a_collapsible_heading_has_space_above(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["report"])
    above = "document.querySelector('#h-applies').closest('section').getBoundingClientRect().bottom"
    assert chromium.evaluate(f"document.querySelector('#h-checks').getBoundingClientRect().top - {above} >= 16")


# --- the entry points


def visible_entries(chromium: Browser) -> list[str]:
    """The names of the drawn entry points."""
    found = chromium.evaluate("[...document.querySelectorAll('.entry .address')].map(name => name.textContent)")
    assert isinstance(found, list)
    return found


def press_in_search(chromium: Browser, text: str) -> None:
    chromium.evaluate("(field => { field.value = ''; field.blur(); })(document.querySelector('#find-entry'))")
    chromium.press("/")
    chromium.write(text)


def test_hundreds_of_entry_points_are_drawn_in_parts_with_what_changes(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["access"])
    chromium.click("#tab-entry-points")
    total = chromium.evaluate("document.querySelector('#tab-entry-points .number').textContent")
    assert int(str(total)) > 600
    assert len(visible_entries(chromium)) == 200
    chromium.click("#more-entries")
    assert len(visible_entries(chromium)) == 400
    chromium.click("[data-entry=changed]")
    assert visible_entries(chromium)[:2] == ["https://*.example.com", "https://au.pay.example.com"]
    assert visible_entries(chromium)[-1] == "what TunnelCredential/rome may open"
    chromium.click("[data-entry=changed]")
    assert chromium.complaints == []


def test_entry_points_are_searched_by_host_resource_and_who_gets_through(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["access"])
    chromium.click("#tab-entry-points")
    press_in_search(chromium, "shop-17.")
    assert visible_entries(chromium) == ["https://shop-17.example.com"]
    press_in_search(chromium, "httpsedge/shop-160 admin")
    assert visible_entries(chromium) == ["https://shop-160.example.com/admin…"]
    press_in_search(chromium, "203.0.113.0 shop-1.")
    assert visible_entries(chromium) == ["https://shop-1.example.com/admin…"]
    press_in_search(chromium, "nothing-like-it")
    assert visible_entries(chromium) == []
    assert "No entry point matches." in chromium.evaluate("document.querySelector('#entry-list').textContent")


def test_entry_points_are_read_by_keyboard(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["access"])
    chromium.evaluate("document.querySelector('#tab-changes').focus()")
    chromium.press("ArrowRight")
    press_in_search(chromium, "pay.example.com")
    chromium.press("ArrowDown")
    chromium.press("ArrowDown")
    chromium.press("Enter")
    inside = "document.querySelector('.entry[open] .inside').innerText"
    chromium.until("document.querySelector('.entry[open] .inside')")
    assert "Decided by: TLSEdge/payments" in chromium.evaluate(inside)
    assert "203.0.113.0/24 → everyone" in chromium.evaluate(inside)
    chromium.press("ArrowUp")
    chromium.press("ArrowUp")
    assert chromium.evaluate("document.activeElement.id") == "find-entry"
    chromium.click(".entry[open] a")
    chromium.until("document.querySelector('#changes .card[open]').checkVisibility()")


def test_foreign_text_creates_no_element_in_the_list_of_entry_points(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["access-hostile"])
    chromium.click("#tab-entry-points")
    chromium.click(".entry summary")
    chromium.until("document.querySelector('.entry .inside')")
    assert chromium.evaluate("document.querySelectorAll('img, iframe, body > script').length") == 2
    assert chromium.complaints == []


# --- a fleet


def members(chromium: Browser) -> list[str]:
    """The members of the rendered rows."""
    found = chromium.evaluate("[...document.querySelectorAll('#list tr')].map(row => row.cells[0].textContent)")
    assert isinstance(found, list)
    return found


def choose(chromium: Browser, column: str, text: str) -> None:
    """Selects an entry in a filter of the members."""
    script = f"""(select => {{
        select.value = [...select.options].find(option => option.text === {text!r}).value;
        select.dispatchEvent(new Event('change'));
    }})(document.querySelector('select[data-column={column}]'))"""
    chromium.evaluate(script)


def test_ten_thousand_members_are_rendered_in_parts(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet-large"])
    chromium.click("#tab-members")
    assert len(members(chromium)) == 200
    chromium.click("#more")
    assert len(members(chromium)) == 400
    assert chromium.evaluate("document.querySelector('#found').textContent") == "10000 shown"


def test_members_are_filtered_by_state_shape_label_and_words(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet-large"])
    chromium.press("/")
    chromium.write("shop-99")
    assert chromium.evaluate("document.querySelector('#found').textContent") == "111 of 10000"
    choose(chromium, "state", "failed")
    assert members(chromium)[:2] == ["shop-99", "shop-999"]
    choose(chromium, "label", "region=eu")
    choose(chromium, "state", "all")
    choose(chromium, "shape", fleets.PLAIN)
    assert "shop-991" in members(chromium)
    assert "shop-992" not in members(chromium)


def test_a_reason_and_a_shape_link_to_their_members(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet"])
    chromium.click("button[data-reason]")
    assert members(chromium) == [f"shop-{number}" for number in range(10, 15)]
    chromium.click("#tab-shapes")
    chromium.click("#s0 > summary")
    chromium.click("#s0 button[data-shape]")
    assert members(chromium) == ["shop-8", "shop-9"]
    reason = chromium.evaluate("document.querySelector('#list tr').cells[5].textContent")
    assert reason == "1 to create, 1 to update"


def test_a_member_links_to_its_shape_and_its_changes(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet"])
    chromium.click("#tab-members")
    chromium.click("#list a[href='#s1']")
    chromium.until("document.querySelector('#s1').open")
    chromium.click("#s1 .card > summary")
    assert "shop-1.example.com:443" in chromium.evaluate("document.querySelector('#s1 .diff').innerText")
    chromium.open(pages["fleet-stopped"])
    assert chromium.evaluate("document.querySelector('#h-waves').textContent") == "Waves"


def test_a_reason_is_shown_with_the_values_of_its_member(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet"])
    chromium.click("button[data-reason]")
    reason = chromium.evaluate("document.querySelector('#list tr').cells[5].textContent")
    assert reason == "The API key of shop-10 is invalid. (status 401, ERR_NGROK_203, op_2ABCDEFGH010)"


def test_foreign_text_creates_no_element_in_the_list_of_members(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["fleet-hostile"])
    chromium.click("#tab-members")
    assert len(members(chromium)) == 3
    assert chromium.evaluate("document.querySelectorAll('img, iframe, body > script').length") == 2
    assert chromium.complaints == []

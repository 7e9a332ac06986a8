"""HTML of a plan: one file, whose structure no foreign text changes. How it behaves is tested in `test_browser`."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given, settings

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Reason
from reconciler.model.plan import Call, Plan, Seen, Verb
from reconciler.model.value import Ref
from reconciler.rendering import html, picture
from reconciler.rendering.wording import Flavour
from tests.rendering import hostile
from tests.rendering.plans import WHOLE, plans
from tests.security.test_orders import orders_in


class Tags(HTMLParser):
    """Elements with the names of their attributes, and every text between."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.structure: list[object] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.structure.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        self.structure.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.structure.append("comment")


@given(hostile.texts)
@settings(deadline=None, max_examples=60)
def test_foreign_text_changes_no_structure(text: str) -> None:
    bad, good = (Tags(html.page(hostile.plan(each))) for each in (text, hostile.harmless(text)))
    assert bad.structure == good.structure
    assert bad.links == good.links


@given(plans)
@settings(deadline=None, max_examples=30)
def test_no_secret_is_shown_and_no_runner_given_an_order(plan: Plan) -> None:
    page = html.page(plan)
    assert "hunter2" not in page
    assert "correct horse" not in page
    assert orders_in(page) == []


def test_links_stay_on_the_page() -> None:
    assert all(re.fullmatch(r"#[a-z]+\d*", each) for each in Tags(html.page(WHOLE)).links)


def test_only_its_own_style_and_script_are_allowed() -> None:
    page = html.page(WHOLE)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    for name in ("style", "script"):
        (inside,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name}-src &#39;sha256-{digest}&#39;" in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;; ")


def test_nothing_has_a_style_or_a_handler_of_its_own() -> None:
    names = {name for tag in Tags(html.page(WHOLE)).structure if isinstance(tag, tuple) for name in tag[1:]}
    assert not {name for name in names if name == "style" or name.startswith("on")}


def test_the_same_plan_is_the_same_page() -> None:
    turned = replace(WHOLE, seen=dict(reversed(list(WHOLE.seen.items()))))
    assert html.page(turned) == html.page(WHOLE)


def test_drift_has_neither_calls_nor_stakes() -> None:
    page = html.page(WHOLE, flavour=Flavour.DRIFT)
    assert "Calls, in order" not in page
    assert "At stake" not in page
    assert "added in Git, not applied yet" in page


def luminance(colour: str) -> float:
    """As WCAG 2 has it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_colour_can_be_read_on_its_ground_by_day_and_by_night() -> None:
    style = re.search("<style>(.*?)</style>", html.page(WHOLE), re.DOTALL)
    assert style
    themes = re.findall(r":root \{(.*?)\}", style[1], re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", theme))
        pairs = [(name, ground) for name in ("ink", "faint", "link") for ground in ("paper", "raised")]
        pairs += [(name.removesuffix("-bg"), name) for name in colours if name.endswith("-bg")]
        pairs += [(name.removesuffix("-bg"), "raised") for name in colours if name.endswith("-bg")]
        for name, ground in pairs:
            low, high = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{name} on {ground}"


# --- the picture ------------------------------------------------------------------------------------------------------

POLICY, RULE, EDGE, DOMAIN = (
    Address(*each.split("/")) for each in ("IPPolicy/p", "IPPolicyRule/r", "TLSEdge/e", "ReservedDomain/d")
)


def change(address: Address, action: Action, *values: object) -> Change:
    return Change(
        address,
        action,
        Reason.FIELDS,
        fields=tuple(FieldChange(f"f{n}", None, value) for n, value in enumerate(values)),
    )


def edges(plan: Plan) -> set[tuple[str, str]]:
    drawn = picture.picture(plan)
    return {(str(drawn.boxes[each.start].address), str(drawn.boxes[each.end].address)) for each in drawn.arrows}


def test_arrows_follow_references_and_ids_that_the_plan_knows() -> None:
    plan = Plan(
        "prod",
        changes=(change(POLICY, Action.CREATE), change(RULE, Action.CREATE, {"a": [Ref(POLICY)]}, "rd_1")),
        seen={DOMAIN: Seen("rd_1", {})},
    )
    assert edges(plan) == {("IPPolicy/p", "IPPolicyRule/r"), ("ReservedDomain/d", "IPPolicyRule/r")}


def test_what_stays_and_is_referred_to_is_drawn_as_staying() -> None:
    plan = Plan("prod", changes=(change(RULE, Action.UPDATE, Ref(POLICY)),))
    assert [(str(box.address), box.change) for box in picture.picture(plan).boxes] == [
        ("IPPolicy/p", None),
        ("IPPolicyRule/r", 0),
    ]


def test_a_delete_that_waits_for_its_referrer_still_has_the_arrow_toward_the_referrer() -> None:
    plan = Plan(
        "prod",
        changes=(change(DOMAIN, Action.DELETE), change(EDGE, Action.DELETE)),
        calls=(
            Call("delete e", EDGE, Verb.DELETE, "/e"),
            Call("delete d", DOMAIN, Verb.DELETE, "/d", needs=("delete e",)),
        ),
    )
    assert edges(plan) == {("ReservedDomain/d", "TLSEdge/e")}


@given(plans)
@settings(deadline=None, max_examples=30)
def test_no_two_boxes_lie_on_each_other_and_all_lie_within_the_picture(plan: Plan) -> None:
    drawn = picture.picture(plan)
    places = [(box.x, box.y) for box in drawn.boxes]
    for number, (x, y) in enumerate(places):
        assert 0 <= x <= drawn.width - picture.WIDTH
        assert 0 <= y <= drawn.height - picture.HEIGHT
        for other_x, other_y in places[:number]:
            assert abs(x - other_x) >= picture.WIDTH or abs(y - other_y) >= picture.HEIGHT


def test_a_picture_of_too_many_is_left_out() -> None:
    policies = (Address("IPPolicy", str(number)) for number in range(picture.MOST + 1))
    plan = Plan("prod", changes=tuple(change(each, Action.CREATE) for each in policies))
    assert picture.picture(plan).boxes == ()

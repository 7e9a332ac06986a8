"""The layout of the dependency graph as a whole: places of boxes and paths of arrows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Reason
from reconciler.model.plan import Call, Observed, Plan, Verb
from reconciler.model.value import Ref
from reconciler.rendering.html import diagram
from tests.harness.golden import compare_golden

EDGE, OTHER = Address("TLSEdge", "edge"), Address("CertificateAuthorityOfPartners", "a-name-of-23-characters")
OBSERVED, DELETED = Address("ReservedDomain", "seen"), Address("IPPolicy", "gone")


def change(address: Address, *values: object, action: Action = Action.CREATE, old: object = None) -> Change:
    fields = tuple(FieldChange(f"f{place}", old, value) for place, value in enumerate(values))
    return Change(address, action, Reason.FIELDS, fields=fields)


def policy(name: str) -> Address:
    return Address("IPPolicy", name)


def chain(name: str, number: int) -> list[Change]:
    """Resources of which each refers to the one before."""
    found = [policy(f"{name}{place}") for place in range(number)]
    return [change(found[0]), *(change(after, Ref(before)) for before, after in pairwise(found))]


def star(name: str, number: int, *, end: bool) -> list[Change]:
    """Resources that refer to one, and one at the end that refers to all of them, across their columns."""
    first, last = policy(name), Address("TLSEdge", name)
    rules = [Address("IPPolicyRule", f"{name}{place:02}") for place in range(number)]
    ends = [change(last, Ref(first), [Ref(rule) for rule in rules])] if end else []
    return [change(first), *(change(rule, {"a": Ref(first)}) for rule in rules), *ends]


CYCLE = [change(policy("egg"), Ref(policy("hen"))), change(policy("hen"), Ref(policy("egg")))]
MIDDLE = Address("TLSEdge", "middle")
OVER = [  # arrows above and below a column with one box
    *(change(policy(f"left{place}")) for place in range(9)),
    change(MIDDLE, Ref(policy("left4"))),
    *(change(Address("IPPolicyRule", f"right{place}"), Ref(MIDDLE), Ref(policy(f"left{place}"))) for place in range(9)),
]
BELOW = [  # an arrow through the lower half of the only box of a column
    *(change(policy(f"left{place}")) for place in range(3)),
    change(MIDDLE, Ref(policy("left0"))),
    change(policy("right0"), Ref(MIDDLE), Ref(policy("left2"))),
    change(policy("right1"), Ref(MIDDLE), Ref(policy("left1"))),
]
PLANS: dict[str, list[Change]] = {
    "nothing": [],
    "islands": [*chain("a", 2), *chain("b", 2), *chain("c", 2), *chain("d", 2), *chain("e", 5)],
    "alone": [*chain("p", 3), *(change(policy(f"alone-{place}")) for place in range(16))],
    "folded-10": star("s", 10, end=False),
    "folded-11": star("s", 11, end=True),
    "folded-24": star("s", 24, end=True),
    "chain": [*chain("x", 5), change(EDGE, Ref(policy("x0")), Ref(policy("x1")), Ref(policy("x4")))],
    "over": OVER,
    "below": BELOW,
    "cycle": [*CYCLE, change(EDGE, Ref(policy("egg")))],
    "values": [
        change(EDGE, "rd_1", "rd_2", Ref(EDGE), old=Ref(policy("former"))),
        change(OTHER, action=Action.UPDATE),
        change(EDGE, action=Action.DELETE),
        change(DELETED, action=Action.DELETE),
        change(policy("lost"), action=Action.DELETE),
    ],
}
CALLS = (
    Call("first", OTHER, Verb.CREATE, "/x", needs=("unknown",)),
    Call("second", EDGE, Verb.CREATE, "/x", needs=("first",)),
    Call("third", EDGE, Verb.UPDATE, "/x", needs=("second", "first")),
    Call("fourth", OTHER, Verb.UPDATE, "/x", needs=("third",)),
    Call("fifth", DELETED, Verb.DELETE, "/x", needs=("third",)),
)
SEEN = {OBSERVED: Observed("rd_1", {"name": "rd_2"}), DELETED: Observed("ipp_1", {"a": ["rd_1"], "b": Ref(OTHER)})}


def describe(plan: Plan) -> str:
    drawn = diagram.draw_diagram(plan)
    lines = [f"{drawn.width:g} × {drawn.height:g}{', waits' if drawn.has_waits else ''}"]
    lines += [
        f"{place} {box.kind}/{box.label} {box.change} at {box.x:g} {box.y:g}" for place, box in enumerate(drawn.boxes)
    ]
    lines += [f"{arrow.start} → {arrow.end}{' waits' * arrow.is_wait} {arrow.path}" for arrow in drawn.arrows]
    return "".join(f"{line}\n" for line in lines)


def test_boxes_and_arrows_have_the_expected_places() -> None:
    plans = {name: Plan("prod", changes=tuple(changes), observed=SEEN) for name, changes in PLANS.items()}
    plans["calls"] = replace(plans["values"], calls=CALLS)
    texts = [f"{name}: {describe(plan)}" for name, plan in plans.items()]
    compare_golden(Path(__file__).parent / "pages" / "diagrams.txt", "\n".join(texts))


@pytest.mark.parametrize(("most", "number"), [(3, 3), (2, 0)])
def test_a_diagram_has_at_most_so_many_boxes(monkeypatch: pytest.MonkeyPatch, most: int, number: int) -> None:
    monkeypatch.setattr(diagram, "MOST", most)
    assert len(diagram.draw_diagram(Plan("prod", changes=tuple(chain("a", 3)))).boxes) == number
    assert diagram.draw_diagram(Plan("prod", observed=SEEN, calls=CALLS)) == diagram.Diagram()

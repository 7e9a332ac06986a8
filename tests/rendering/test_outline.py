"""The rows of a plan: every form of value, and what belongs to a change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.known_drift import IgnoredDifference
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, Base, Call, Observed, Plan, Users, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.model.value import Hidden, JsonTemplate, Ref, Secret, Template
from reconciler.rendering.plan.outline import Outline, build_outline, format_value, symbol
from tests.rendering.test_text import compare

EDGE, OFFICE, LAN = Address("TLSEdge", "pay"), Address("IPPolicy", "office"), Address("IPPolicyRule", "lan")
LONG_ID, OTHER_ID = "ipp_2ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ipp_2ZYXWVUTSRQPONMLKJIHGFEDCBA"
WIDE = "w" * 50
VALUES: tuple[Any, ...] = (
    "",
    "plain",
    'a "b" \\ c\x1b',
    "one\ntwo  \n\n",
    "one line\n",
    True,
    False,
    7,
    0.5,
    [],
    {},
    [1, None, "x"],
    [[WIDE], {"k": WIDE}, "x\ny", WIDE * 2],
    {"b": 1, "a": {"deep": [WIDE, {"x": WIDE}]}, "text": f"{WIDE}\n{WIDE}", "wide": WIDE * 2},
    {"empty": {}, "list": [[], [[]]]},
    Hidden("x"),
    Hidden("", "env:A"),
    Secret("hunter2", "env:A"),
    [Secret("hunter2", "env:A"), {"k": Hidden("y")}],
    Ref(OFFICE, "id"),
    Ref(LAN, "id"),
    Ref(LAN, "cidr"),
    Ref(EDGE, "id"),
    Template(("a ", Ref(OFFICE, "id"), ' "b"')),
    JsonTemplate(("a", Ref(OFFICE, "id"))),
    LONG_ID,
    OTHER_ID,
    "ipp_named",
    "ipp_short",
    [LONG_ID, "ipp_named", OTHER_ID],
)
KNOWN = Plan(
    "prod",
    observed={OFFICE: Observed(LONG_ID, {}), Address("IPPolicy", "short"): Observed("ipp_short", {})},
    names={"ipp_named": "IPPolicy/partners of stack web", OTHER_ID: "IPPolicy/lan"},
    resolved={"IPPolicy/office.id": LONG_ID, "IPPolicyRule/lan.id": "ipr_1", "IPPolicyRule/lan.cidr": "10.0.0.0/8"},
)


def rows(has_ids: bool = True, **parts: Any) -> Outline:
    known = {name: getattr(KNOWN, name) for name in ("observed", "names", "resolved")}
    return build_outline(Plan("prod", **{**known, **parts}), has_ids=has_ids)


def test_every_form_of_value_is_shown() -> None:
    def list_lines() -> Iterator[str]:
        for value, has_ids in product(VALUES, (True, False)):
            fields = (FieldChange("f", None, value, ChangedBy.GIT),)
            (change,) = rows(has_ids, changes=(Change(EDGE, Action.UPDATE, Reason.FIELDS, fields=fields),)).changes
            displayed = change.fields[0].new
            assert displayed is not None
            yield f"{value!r} {'with' if has_ids else 'without'} ids".replace("w" * 50, "w×50")
            yield from (f"  {line}".replace("w" * 50, "w×50") for line in (displayed.line, *displayed.lines))
        yield from (format_value(value) for value in ("a", [1], Ref(OFFICE, "id"), Hidden("x")))

    compare("outline-values.txt", "".join(f"{line}\n" for line in list_lines()))


def test_a_name_that_two_objects_have_is_shown_with_the_id() -> None:
    names = {"ipp_1": "IPPolicy/a", "ipp_2": "IPPolicy/a", "ipp_3": "IPPolicy/b"}
    field = FieldChange("f", None, [*names, Ref(Address("IPPolicy", "b"), "id")])
    for resolved, same in (("ipp_3", "IPPolicy/b, IPPolicy/b"), ("ipp_4", "IPPolicy/b (ipp_3), IPPolicy/b (ipp_4)")):
        plan = Plan(
            "prod",
            names=names,
            resolved={"IPPolicy/b.id": resolved},
            changes=(Change(EDGE, Action.UPDATE, Reason.FIELDS, fields=(field,)),),
        )
        (change,) = build_outline(plan, has_ids=False).changes
        assert change.fields[0].new is not None
        assert change.fields[0].new.line == f"[IPPolicy/a (ipp_1), IPPolicy/a (ipp_2), {same}]"


def test_a_diff_has_two_lines_around_each_change() -> None:
    old = [f"{place}" for place in range(20)]
    new = [*old[:3], "x", *old[4:9], *old[10:16], "y", *old[16:]]
    field = FieldChange("f", "\n".join(old), "\n".join(new))
    (change,) = rows(changes=(Change(EDGE, Action.UPDATE, Reason.FIELDS, fields=(field,)),)).changes
    found = " ".join(f"{line.sign}{line.text}" for line in change.fields[0].diff)
    assert found == " 1  2 -3 +x  4  5 …  7  8 -9  10  11 …  14  15 +y  16  17"


@pytest.mark.parametrize("action", Action)
def test_deliveries_belong_to_the_actions_that_issue_a_secret(action: Action) -> None:
    call = Call("1", EDGE, Verb.CREATE, "/x", deliver={"token": Delivery("to_file", "secrets/a")})
    calls = (call, Call("2", LAN, Verb.CREATE, "/y"))
    found = rows(changes=[Change(address, action, Reason.FIELDS) for address in (EDGE, LAN)], calls=calls).changes
    delivered = ("token will be delivered to the file secrets/a",)
    assert [row.deliveries for row in found] == [delivered if action in (Action.CREATE, Action.REPLACE) else (), ()]


def test_a_change_has_its_users_and_the_risks_of_its_entry_points() -> None:
    risks = (Risk.WIDENS_ACCESS, Risk.LOCKS_OUT, Risk.IRREVERSIBLE)
    changes = [Change(address, Action.UPDATE, Reason.FIELDS, risks=risks) for address in (EDGE, OFFICE, LAN)]
    access = tuple(
        AccessChange("https://a", verdict, "a", "b", "", True, causes, "")
        for verdict, causes in (
            (Verdict.WIDENS, ("TLSEdge/pay", "IPPolicy/office")),
            (Verdict.LOCKS_OUT, ("TLSEdge/pay",)),
            (Verdict.NARROWS, ("IPPolicyRule/lan",)),
            (Verdict.EXPOSES, ("IPPolicy/office",)),
        )
    )
    found = rows(changes=changes, access=access, users={OFFICE: Users((EDGE, LAN), 7)}).changes
    assert [row.access_risks for row in found] == [risks[:2], risks[:1], ()]
    assert [row.other_risks for row in found] == [risks[2:], risks[1:], risks]
    assert [(row.users, row.user_count) for row in found] == [
        ((), 0),
        (("TLSEdge/pay", "IPPolicyRule/lan"), 7),
        ((), 0),
    ]


def test_the_rows_of_a_plan_are_complete() -> None:
    """A row with and without each optional value."""

    def list_lines() -> Iterator[str]:
        place = Position("a.yaml", 3, 5)
        states: tuple[Any, ...] = (None, "everywhere", 3, ["a"], [])
        for before, after in product(states, states):
            change = RuleChange(RuleRisk.LOOSENS, "guards", "guards.x", before, after, "d", place if after else None)
            (row,) = rows(rule_changes=(change,)).rule_changes
            yield f"rule {before!r} {after!r}: {row.values} at {row.position!r}, granted {row.granted}"
        yield from (f"{action} {order}: {symbol(action, order)}" for action, order in product(Action, (None, *Order)))
        bare = Change(EDGE, Action.DELETE, Reason.REMOVED, identity={"domain": "a", "n": 1}, cause=Cause.DRIFT)
        whole = Change(
            EDGE,
            Action.REPLACE,
            Reason.IMMUTABLE,
            "e_1",
            (FieldChange("f", 1, 2, position=place), FieldChange("g", None, None)),
            Order.CREATE_FIRST,
            protected=True,
            position=place,
            former=LAN,
            parent=OFFICE,
            is_pending=True,
        )
        for problems in (0, 1, 9, 10, 11, 12):
            wrong = tuple(Problem(f"wrong {number}", "", code="x") for number in range(problems))
            base = rows(base=Base("main", "0123456789", problems=wrong, withdrawn=(bare,))).base
            assert base is not None
            yield f"base {problems}: {base.commit} {base.is_comparable} {base.problems[:1]} {base.problems[9:]}"
        calls = (
            Call("b", EDGE, Verb.CREATE, Template(("/a/", Ref(OFFICE, "id"), "/b"))),
            Call("a", LAN, Verb.UPDATE, "/c\x1b", needs=("c", "b", "gone")),
            Call("c", LAN, Verb.DELETE, "/d"),
        )
        ignored = tuple(IgnoredDifference("IPPolicy/a", day) for day in ("2026-02-01", "", "2026-01-01", "2026-01-01"))
        severities = (Severity.NOTE, Severity.WARNING, Severity.ERROR, Severity.WARNING)
        seen = rows(
            changes=(bare, whole),
            additions=(bare,),
            calls=calls,
            ignored=ignored,
            problems=tuple(Problem(f"p{number}", severity=level, code="x") for number, level in enumerate(severities)),
            approvals=tuple(
                Approval("delete", "BotUser", 1, "why", granted=granted, is_optional=optional)
                for granted, optional in product((False, True), repeat=2)
            ),
            unmanaged=(("TLSEdge", "1"), ("BotUser", "1"), ("TLSEdge", "2")),
        )
        for name in seen.__struct_fields__:
            value = getattr(seen, name)
            yield from (f"{name}: {row}" for row in (value if isinstance(value, tuple) else (value,)))
        for name in ("errors", "urgent_problems", "notes", "missing_approvals"):
            yield f"{name}: {getattr(seen, name)}"

    compare("outline-rows.txt", "".join(f"{line}\n" for line in list_lines()))

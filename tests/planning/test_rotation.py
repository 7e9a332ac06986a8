"""Renewal of what has a one-time secret: due by its age, and both alive for the overlap."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Order, Reason
from reconciler.model.manifest import Rotation
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Live
from reconciler.planning.deciding.rotation import read_creation_time
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import at, declare, live, make_plan, record, snapshot

MADE = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DAY = 86_400
RENEWED = Rotation(after=90 * DAY, overlap=DAY)


def credential(object_id: str, made: str = "2026-01-01T00:00:00Z", **owner: Any) -> Live:
    mine: Owner = record("TunnelCredential/agent", {})._replace(intent=f"of {object_id}", **owner)
    return live("TunnelCredential", object_id, {"created_at": made}, owner=mine)


def plan_at(now: float, *there: Live, rotate: Rotation | None = RENEWED) -> Plan:
    declared = replace(declare("TunnelCredential/agent"), rotate=rotate)
    return make_plan(declared, seen=snapshot(*there), options=PlanOptions(now=now))


def test_before_its_time_nothing_happens() -> None:
    assert plan_at(MADE + 90 * DAY - 1, credential("cr_1")).is_empty


def test_at_its_time_it_is_made_anew_and_the_old_one_stays() -> None:
    plan = plan_at(MADE + 90 * DAY, credential("cr_1"))
    assert [(change.action, change.reason, change.order) for change in plan.changes] == [
        (Action.REPLACE, Reason.ROTATION, Order.CREATE_FIRST)
    ]
    assert [call.verb for call in plan.calls] == [Verb.CREATE, Verb.UPDATE]
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.replaces == "cr_1"


def test_without_an_overlap_the_old_one_goes_at_once() -> None:
    plan = plan_at(MADE + 90 * DAY, credential("cr_1"), rotate=Rotation(after=90 * DAY))
    assert [call.verb for call in plan.calls] == [Verb.CREATE, Verb.UPDATE, Verb.DELETE]


def test_during_the_overlap_both_live() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    assert plan_at(MADE + 90 * DAY + DAY - 1, *both).is_empty


def test_after_the_overlap_the_old_one_goes() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    plan = plan_at(MADE + 91 * DAY, *both)
    assert [(call.verb, call.target) for call in plan.calls] == [(Verb.DELETE, "cr_1")]
    assert [change.reason for change in plan.changes] == [Reason.SUPERSEDED]


def test_an_old_one_stays_while_its_successor_has_not_been_delivered() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1", pending=True)
    plan = plan_at(MADE + 200 * DAY, *both)
    assert "cr_1" not in {call.target for call in plan.calls if call.verb is Verb.DELETE}


def test_what_nobody_holds_the_secret_of_does_not_live_on() -> None:
    both = credential("cr_1", pending=True), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    plan = plan_at(MADE + 90 * DAY + 1, *both)
    assert [(call.verb, call.target) for call in plan.calls] == [(Verb.DELETE, "cr_1")]


def test_without_a_word_about_it_nothing_is_renewed() -> None:
    assert plan_at(MADE + 9_000 * DAY, credential("cr_1"), rotate=None).is_empty


# --- and called otherwise ---------------------------------------------------------------------------------------------


OLDER, NEWER = "TunnelCredential/older", "TunnelCredential/newer"


def rotate(first: str, second: str) -> tuple[Live, Live]:
    """A credential and the one that it was renewed by, each with the name that its record gives it."""
    return (
        credential("cr_1", address=at(first)),
        credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1", address=at(second)),
    )


@pytest.mark.parametrize("moved", [(OLDER,), ()], ids=["moved in Git", "moved no longer in Git"])
@pytest.mark.parametrize("excludes", [(), ("*/agent",)], ids=["selected", "left out"])
def test_renewed_under_a_new_name_both_live_for_the_overlap(moved: tuple[str, ...], excludes: tuple[str, ...]) -> None:
    there = rotate(OLDER, "TunnelCredential/agent")
    declared = replace(declare("TunnelCredential/agent", moved=moved), rotate=RENEWED)
    for seconds, ended in ((DAY - 1, []), (DAY, [] if excludes else ["cr_1"])):
        policy = PlanOptions(now=MADE + 90 * DAY + seconds, excludes=excludes)
        plan = make_plan(declared, seen=snapshot(*there), options=policy)
        assert plan.problems == ()
        assert [(change.action, change.id) for change in plan.changes] == [(Action.DELETE, each) for each in ended]


@pytest.mark.parametrize("first", [OLDER, NEWER])
def test_renewed_and_then_given_a_new_name_both_live_for_the_overlap(first: str) -> None:
    """Once while the successor is to get its new name, once after it did."""
    declared = replace(declare("TunnelCredential/agent", moved=[OLDER, NEWER]), rotate=RENEWED)
    for seconds, ended in ((DAY - 1, []), (DAY, ["cr_1"])):
        plan = make_plan(
            declared, seen=snapshot(*rotate(first, NEWER)), options=PlanOptions(now=MADE + 90 * DAY + seconds)
        )
        assert plan.errors == ()
        assert [call.target for call in plan.calls if call.verb is Verb.DELETE] == ended
        assert [change.id for change in plan.changes if change.action is Action.MOVE] == ["cr_2"]


def test_a_successor_that_another_declaration_took_leaves_the_old_one_to_the_one_that_had_it() -> None:
    there = rotate(OLDER, NEWER)
    declared = [declare("TunnelCredential/x", moved=[OLDER]), declare(NEWER)]
    plan = make_plan(*declared, seen=snapshot(*there), options=PlanOptions(now=MADE + 91 * DAY))
    assert [(str(change.address), change.action, change.id) for change in plan.changes] == [
        ("TunnelCredential/x", Action.MOVE, "cr_1")
    ]


def test_a_credential_that_is_not_managed_is_adopted_and_not_rotated() -> None:
    declared = replace(declare("TunnelCredential/agent", id="cr_1"), rotate=RENEWED)
    live_credential = live("TunnelCredential", "cr_1", {"created_at": "2026-01-01T00:00:00Z"})
    plan = make_plan(declared, seen=snapshot(live_credential), options=PlanOptions(now=MADE + 900 * DAY))
    assert [change.action for change in plan.changes] == [Action.ADOPT]
    assert [call.verb for call in plan.calls] == [Verb.UPDATE]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02T00:00:00Z", 86_400.0),
        ("1970-01-02T01:00:00+01:00", 86_400.0),
        ("1970-01-02T00:00:00.500Z", 86_400.5),
        ("1970-01-02T00:00:00", None),  # no time zone: nobody knows when
        ("yesterday", None),
        ("", None),
        (None, None),
        (86_400, None),
    ],
)
def test_a_creation_time_counts_only_if_it_is_a_moment(text: object, seconds: float | None) -> None:
    assert read_creation_time(live("TunnelCredential", "cr_1", {"created_at": text})) == seconds
    assert read_creation_time(live("TunnelCredential", "cr_1")) is None

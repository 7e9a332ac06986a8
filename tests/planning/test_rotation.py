"""Rotation of credentials: due by age, with an overlap of both credentials."""

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
from tests.harness.builders import at, declare, live, make_plan, record, snapshot

CREATED = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DAY = 86_400
ROTATION = Rotation(after=90 * DAY, overlap=DAY)


def credential(object_id: str, created_at: str = "2026-01-01T00:00:00Z", **owner: Any) -> Live:
    owner_record: Owner = record("TunnelCredential/agent", {})._replace(intent=f"of {object_id}", **owner)
    return live("TunnelCredential", object_id, {"created_at": created_at}, owner=owner_record)


def plan_at(now: float, *live_objects: Live, rotate: Rotation | None = ROTATION) -> Plan:
    declared = replace(declare("TunnelCredential/agent"), rotate=rotate)
    return make_plan(declared, seen=snapshot(*live_objects), options=PlanOptions(now=now))


def test_a_credential_is_not_replaced_before_its_rotation_is_due() -> None:
    assert plan_at(CREATED + 90 * DAY - 1, credential("cr_1")).is_empty


def test_a_due_credential_is_replaced_and_the_old_one_remains_for_the_overlap() -> None:
    plan = plan_at(CREATED + 90 * DAY, credential("cr_1"))
    assert [(change.action, change.reason, change.order) for change in plan.changes] == [
        (Action.REPLACE, Reason.ROTATION, Order.CREATE_FIRST)
    ]
    assert [call.verb for call in plan.calls] == [Verb.CREATE, Verb.UPDATE]
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.replaces == "cr_1"


def test_a_due_credential_without_an_overlap_is_deleted_at_once() -> None:
    plan = plan_at(CREATED + 90 * DAY, credential("cr_1"), rotate=Rotation(after=90 * DAY))
    assert [call.verb for call in plan.calls] == [Verb.CREATE, Verb.UPDATE, Verb.DELETE]


def test_both_credentials_exist_during_the_overlap() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    assert plan_at(CREATED + 90 * DAY + DAY - 1, *both).is_empty


def test_the_old_credential_is_deleted_after_the_overlap() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    plan = plan_at(CREATED + 91 * DAY, *both)
    assert [(call.verb, call.target) for call in plan.calls] == [(Verb.DELETE, "cr_1")]
    assert [change.reason for change in plan.changes] == [Reason.SUPERSEDED]


def test_an_old_credential_remains_while_its_successor_is_undelivered() -> None:
    both = credential("cr_1"), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1", pending=True)
    plan = plan_at(CREATED + 200 * DAY, *both)
    assert "cr_1" not in {call.target for call in plan.calls if call.verb is Verb.DELETE}


def test_an_undelivered_credential_is_deleted_without_an_overlap() -> None:
    both = credential("cr_1", pending=True), credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1")
    plan = plan_at(CREATED + 90 * DAY + 1, *both)
    assert [(call.verb, call.target) for call in plan.calls] == [(Verb.DELETE, "cr_1")]


def test_a_credential_without_a_rotation_is_never_replaced() -> None:
    assert plan_at(CREATED + 9_000 * DAY, credential("cr_1"), rotate=None).is_empty


# --- rotations with a new name ----------------------------------------------------------------------------------------


OLDER, NEWER = "TunnelCredential/older", "TunnelCredential/newer"


def rotate(first: str, second: str) -> tuple[Live, Live]:
    """A credential and its successor, each with the address of its owner record."""
    return (
        credential("cr_1", address=at(first)),
        credential("cr_2", "2026-04-01T00:00:00Z", replaces="cr_1", address=at(second)),
    )


@pytest.mark.parametrize("moved", [(OLDER,), ()], ids=["moved in Git", "move removed from Git"])
@pytest.mark.parametrize("excludes", [(), ("*/agent",)], ids=["selected", "excluded"])
def test_both_credentials_exist_for_the_overlap_under_a_new_name(
    moved: tuple[str, ...], excludes: tuple[str, ...]
) -> None:
    pair = rotate(OLDER, "TunnelCredential/agent")
    declared = replace(declare("TunnelCredential/agent", moved=moved), rotate=ROTATION)
    for seconds, ended in ((DAY - 1, []), (DAY, [] if excludes else ["cr_1"])):
        policy = PlanOptions(now=CREATED + 90 * DAY + seconds, excludes=excludes)
        plan = make_plan(declared, seen=snapshot(*pair), options=policy)
        assert plan.problems == ()
        assert [(change.action, change.id) for change in plan.changes] == [(Action.DELETE, id) for id in ended]


@pytest.mark.parametrize("first", [OLDER, NEWER])
def test_both_credentials_exist_for_the_overlap_if_a_rotated_credential_is_renamed(first: str) -> None:
    """Before and after the successor is moved to its new name."""
    declared = replace(declare("TunnelCredential/agent", moved=[OLDER, NEWER]), rotate=ROTATION)
    for seconds, ended in ((DAY - 1, []), (DAY, ["cr_1"])):
        plan = make_plan(
            declared, seen=snapshot(*rotate(first, NEWER)), options=PlanOptions(now=CREATED + 90 * DAY + seconds)
        )
        assert plan.errors == ()
        assert [call.target for call in plan.calls if call.verb is Verb.DELETE] == ended
        assert [change.id for change in plan.changes if change.action is Action.MOVE] == ["cr_2"]


def test_a_credential_is_moved_if_its_successor_has_another_declaration() -> None:
    pair = rotate(OLDER, NEWER)
    declared = [declare("TunnelCredential/x", moved=[OLDER]), declare(NEWER)]
    plan = make_plan(*declared, seen=snapshot(*pair), options=PlanOptions(now=CREATED + 91 * DAY))
    assert [(str(change.address), change.action, change.id) for change in plan.changes] == [
        ("TunnelCredential/x", Action.MOVE, "cr_1")
    ]


def test_an_unmanaged_credential_is_adopted_and_not_rotated() -> None:
    declared = replace(declare("TunnelCredential/agent", id="cr_1"), rotate=ROTATION)
    live_credential = live("TunnelCredential", "cr_1", {"created_at": "2026-01-01T00:00:00Z"})
    plan = make_plan(declared, seen=snapshot(live_credential), options=PlanOptions(now=CREATED + 900 * DAY))
    assert [change.action for change in plan.changes] == [Action.ADOPT]
    assert [call.verb for call in plan.calls] == [Verb.UPDATE]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02T00:00:00Z", 86_400.0),
        ("1970-01-02T01:00:00+01:00", 86_400.0),
        ("1970-01-02T00:00:00.500Z", 86_400.5),
        ("1970-01-02T00:00:00", None),  # no time zone
        ("yesterday", None),
        ("", None),
        (None, None),
        (86_400, None),
    ],
)
def test_a_creation_time_requires_a_time_zone(text: object, seconds: float | None) -> None:
    assert read_creation_time(live("TunnelCredential", "cr_1", {"created_at": text})) == seconds
    assert read_creation_time(live("TunnelCredential", "cr_1")) is None

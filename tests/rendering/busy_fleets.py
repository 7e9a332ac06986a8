"""Fleet runs with a row of every sort that the runs of `fleets` lack: two projects, silent members, plans of another
release, deletions, changes of many fields, optional and granted approvals, waves in every state."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.fleet import Amount, Member, RunState, RunVerb, Shape, TaskRecord, TaskState, Wave
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Approval, Plan
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.rendering.wire import plan_json
from tests.rendering import fleets
from tests.rendering.fleets import APPLY, DNS, ENDED, JUDGED, NOON, PLAIN, RUN, WIDE, fleet, task

BUSY, LOST, MIXED = "111111111111", "222222222222", "333333333333"


def busy_plan() -> Plan:
    """14 changes, of which one has five fields, a deletion, two risks, and an entry point that may open."""
    fields = tuple(FieldChange(f"field_{place}", place, place + 1, ChangedBy.GIT) for place in range(5))
    declared = FieldChange("description", None, "office", ChangedBy.GIT)
    changes = [
        Change(Address("IPPolicy", f"p{place:02}"), Action.CREATE, Reason.DECLARED, fields=(declared,) * (place < 2))
        for place in range(12)
    ]
    changes.append(
        Change(Address("TLSEdge", "pay"), Action.UPDATE, Reason.FIELDS, "e_1", fields, risks=(Risk.EXPOSES,))
    )
    gone = Address("ReservedDomain", "old")
    risks = (Risk.IRREVERSIBLE, Risk.INTERRUPTS_TRAFFIC)
    changes.append(Change(gone, Action.DELETE, Reason.REMOVED, "rd_1", risks=risks))
    approvals = (
        Approval("delete", "ReservedDomain", 1, "ReservedDomain/old is deleted"),
        Approval("exposes", "TLSEdge", 1, "TLSEdge/pay opens a new way in", granted=True),
    )
    hosts = [f"h{place}.shop-1.example.com" for place in range(6)]
    access = [
        AccessChange(f"tls://{host}", Verdict.NARROWS, "everyone", "10.0.0.0/8", f"`tls://{host}`", True, (), host)
        for host in hosts
    ]
    office = "office.example.com"
    witness = "`tls://office.example.com` from 192.0.2.1"
    access.append(
        AccessChange(f"tls://{office}", Verdict.WIDENS, "no one", "everyone", witness, False, ("TLSEdge/pay",), office)
    )
    return Plan("base", access=tuple(access), changes=tuple(changes), approvals=approvals, created=NOON)


def shape(digest: str, member: str, project: str, plan: Plan) -> Shape:
    return Shape(digest, member, project, plan_json.write_plan(plan))


SHAPES = {
    BUSY: shape(BUSY, "shop-1", "base", busy_plan()),
    LOST: Shape(LOST, "shop-4", "edge", '{"format": "reconciler plan", "version": 99}'),
}
MEMBERS = {
    name: replace(member, labels=labels)
    for (name, member), labels in zip(
        fleet(9).members.items(),
        [{"region": "eu", "size": "s"}, {"region": "us"}, {}, {"region": "eu"}, *({"region": "ap"} for _ in range(5))],
        strict=True,
    )
}
KNOWN = replace(fleet(0), members=MEMBERS)


def of_edge(record: TaskRecord) -> TaskRecord:
    return replace(record, project="edge")


_PLANNED = (
    KNOWN,
    replace(ENDED, actor="", commit="", reviewed=""),
    [
        *(replace(task(place, digest=BUSY), counts={"create": 12, "update": 1, "delete": 1}) for place in range(1, 5)),
        replace(of_edge(task(4, digest=LOST)), counts={"delete": 2, "create": 1}, requests=3),
        replace(task(5, TaskState.BLOCKED), reason="a policy forbids TLSEdge/a"),
        replace(of_edge(task(5, TaskState.BLOCKED)), reason="a policy forbids TLSEdge/b"),
        replace(task(6, TaskState.FAILED), reason=""),
        replace(task(7), counts={}, changes={}, shape="", exit_code=exit_codes.CHANGES, seconds=61.04),
    ],
    SHAPES,
    NOON + 90,
)
PLANNED = build_rollup(*_PLANNED)
"""A plan: shapes with and without an approval, one of another release, and reasons with and without a text."""

WAVES = (
    Wave("first", max_failures=Amount(0)),
    Wave("none"),
    Wave("asked-1", approve=True),
    Wave("running", max_failures=Amount(100, is_percent=True)),
    Wave("asked-2", approve=True),
    Wave("a name that is much longer than the column of waves"),
)
_APPLYING = (
    KNOWN,
    replace(APPLY, approved_shapes=(BUSY,), approved_waves=("asked-1",), commit="", actor="", waves=WAVES),
    [
        replace(task(1, digest=BUSY), counts={"create": 12, "update": 1, "delete": 1}),
        replace(task(2, TaskState.FAILED, digest=BUSY), counts={"create": 3}, shape=BUSY, exit_code=exit_codes.PARTLY),
        task(3, TaskState.SKIPPED, wave=1),
        task(4, wave=2),
        *(
            replace(task(place, TaskState.RUNNING, wave=3), alive=NOON - 30 * place, attempts=2)
            for place in (5, 6, 7, 8)
        ),
        of_edge(task(8, TaskState.WAITING, wave=4)),
        task(9, TaskState.WAITING, wave=5),
    ],
    SHAPES,
    NOON + 15,
)
APPLYING = build_rollup(*_APPLYING)
"""An apply that goes on, with a wave in each state, and four members without a heartbeat."""

WRONG = Health(State.UNKNOWN, "its 3 records cannot be read", "ask again", Actor.PLATFORM)


def check(place: int, *rows: tuple[str, Health], code: int = exit_codes.DONE) -> TaskRecord:
    """A task that judged these objects."""
    health = CheckedHealth(9, tuple(HealthRow(address, "", found) for address, found in rows))
    return replace(task(place), counts={}, changes={}, shape="", exit_code=code, health=health)


_DRIFTED = (
    replace(KNOWN, members={**MEMBERS, "other": Member("other", {})}),
    replace(JUDGED, state=RunState.OPEN, ended=None),
    [
        check(1, ("TLSEdge/a", DNS), ("TLSEdge/b", WRONG), code=exit_codes.DEGRADED),
        *(check(place, ("TLSEdge/a", DNS), code=exit_codes.DEGRADED) for place in (2, 3, 4)),
        of_edge(check(4, ("TLSEdge/b", WRONG))),
        replace(check(5), shape=MIXED, counts={"added": 1, "update": 1}, exit_code=exit_codes.CHANGES),
        replace(check(6), exit_code=exit_codes.CHANGES),
        replace(task(7, TaskState.RUNNING), alive=NOON),
        replace(task(8, TaskState.FAILED), reason="the store of shop-8 is full"),
    ],
    {
        MIXED: shape(
            MIXED,
            "shop-5",
            "base",
            Plan(
                "base",
                created=NOON,
                changes=(
                    Change(
                        Address("TLSEdge", "pay"),
                        Action.UPDATE,
                        Reason.FIELDS,
                        "e_1",
                        (FieldChange("description", "by hand", "declared", ChangedBy.PLATFORM),),
                    ),
                ),
                additions=(
                    Change(
                        Address("IPPolicyRule", "ipr_9"),
                        Action.DELETE,
                        Reason.ADDED,
                        "ipr_9",
                        (FieldChange("cidr", "10.0.0.0/8", None, ChangedBy.PLATFORM),),
                        risks=(Risk.ADDED,),
                        parent=Address("IPPolicy", "office"),
                    ),
                ),
            ),
        )
    },
    NOON + 15,
)
DRIFTED = build_rollup(*_DRIFTED)
"""A check of health that goes on: objects of two projects, degraded and unknown ones, and members that are left."""

_EMPTY = (
    KNOWN,
    replace(RUN, verb=RunVerb.DRIFT, state=RunState.SUCCEEDED),
    list[TaskRecord](),
    dict[str, Shape](),
    NOON,
)
EMPTY = build_rollup(*_EMPTY)

SHARED = build_rollup(
    KNOWN,
    ENDED,
    [
        task(1, digest=BUSY),
        *(task(place, digest=WIDE) for place in (2, 3)),
        *(task(place, digest=PLAIN) for place in range(4, 7)),
    ],
    {**SHAPES, WIDE: fleets.SHAPES[WIDE], PLAIN: fleets.SHAPES[PLAIN]},
    NOON,
)
"""A plan of three shapes."""


RUNS: dict[str, RollUp] = {"plan": PLANNED, "apply": APPLYING, "drift": DRIFTED, "empty": EMPTY}


def build(name: str) -> RollUp:
    """One of these runs, made again: the record of the mutation score knows only what a test runs itself."""
    return build_rollup(*{"plan": _PLANNED, "apply": _APPLYING, "drift": _DRIFTED, "empty": _EMPTY}[name])

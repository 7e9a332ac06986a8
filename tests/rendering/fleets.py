"""Examples of fleet runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.fleet import (
    Amount,
    Fleet,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Pause,
    Run,
    RunState,
    RunVerb,
    Shape,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.plan import Approval, Call, Plan, Verb
from reconciler.model.value import Secret
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.rendering.wire import plan_json
from tests.rendering import hostile

NOON = 1_795_435_200.0  # 2026-11-23 12:00 UTC
PLAIN, WIDE, OPENED = "0a1b2c3d4e5f", "f0e1d2c3b4a5", "abcdefabcdef"
RUN = Run(
    "20261123-120000-a1b2",
    "shops",
    RunVerb.PLAN,
    "/srv/infra",
    "fleet.yaml",
    "0123456789abcdef0123456789abcdef01234567",
    NOON,
    actor="octocat",
)
KEY = KeySource(KeyMethod.ENV, "KEY_${{ member.name }}")


def fleet(number: int) -> Fleet:
    members = {
        name: Member(name, {"region": "eu" if place % 2 else "us"}, {"domain": f"{name}.example.com"})
        for place in range(1, number + 1)
        for name in [f"shop-{place}"]
    }
    return Fleet("shops", members, {"base": FleetProject("base", "base")}, KEY)


EDGE, OFFICE = Address("TLSEdge", "payments"), Address("IPPolicyRule", "office")


def plan(member: str, *, is_wide: bool = False) -> Plan:
    """A plan that creates an edge; a wide one also opens a policy to the world."""
    host = FieldChange("hostports", None, [f"{member}.example.com:443"], ChangedBy.GIT)
    key = FieldChange("secret", None, Secret("hunter2", "env:SECRET"), ChangedBy.GIT)
    changes = [Change(EDGE, Action.CREATE, Reason.DECLARED, fields=(host, key))]
    if is_wide:
        cidr = FieldChange("cidr", "10.0.0.0/8", "0.0.0.0/0", ChangedBy.GIT)
        changes.append(Change(OFFICE, Action.UPDATE, Reason.FIELDS, "ipr_1", (cidr,), risks=(Risk.WIDENS_ACCESS,)))
    calls = (Call("create edge", EDGE, Verb.CREATE, "/edges/tls"),)
    approvals = (Approval("widens_access", "IPPolicyRule", 1, "IPPolicyRule/office widens access"),) if is_wide else ()
    access = tuple(list_openings(member, "10.0.0.0/8", (str(OFFICE),))) if is_wide else ()
    return Plan("base", access=access, changes=tuple(changes), calls=calls, approvals=approvals, created=NOON)


def list_openings(member: str, before: str, causes: tuple[str, ...]) -> Iterator[AccessChange]:
    """Two entry points of a member that let in everyone."""
    for host in (f"{member}.example.com", f"admin.{member}.example.com"):
        witness = f"`tls://{host}` from 192.0.2.1"
        yield AccessChange(
            f"tls://{host}", Verdict.WIDENS, before, "everyone", witness, True, causes, host, public=True
        )


def drift(member: str) -> Plan:
    """A rule that was added to a policy on the platform, which opens entry points."""
    address = Address("IPPolicyRule", f"ipr_of_{member}")
    cidr = FieldChange("cidr", "0.0.0.0/0", None, ChangedBy.PLATFORM)
    added = Change(address, Action.DELETE, Reason.ADDED, address.name, (cidr,), parent=Address("IPPolicy", "office"))
    access = tuple(list_openings(member, "10.0.0.0/8", (str(address),)))
    return Plan("base", access=access, additions=(added,), created=NOON)


def shape(digest: str, member: str) -> Shape:
    return Shape(digest, member, "base", plan_json.write_plan(plan(member, is_wide=digest == WIDE)))


SHAPES: Mapping[str, Shape] = {
    PLAIN: shape(PLAIN, "shop-1"),
    WIDE: shape(WIDE, "shop-8"),
    OPENED: Shape(OPENED, "shop-3", "base", plan_json.write_plan(drift("shop-3"))),
}


def task(place: int, state: TaskState = TaskState.SUCCEEDED, *, wave: int = 0, digest: str = PLAIN) -> TaskRecord:
    """A task of the member with this number. A reason contains its name, an id and a number."""
    name = f"shop-{place}"
    record = TaskRecord(RUN.id, name, "base", wave, state)
    if state is TaskState.WAITING:
        return record
    record = replace(record, attempts=1, worker="host:1", started=NOON + place, ended=NOON + place + 2, seconds=2.0)
    match state:
        case TaskState.SUCCEEDED:
            counts = {"create": 1, "update": 1} if digest == WIDE else {"create": 1}
            changes = {"TLSEdge/payments": "00"}
            return replace(record, exit_code=0, counts=counts, changes=changes, shape=digest, requests=9)
        case TaskState.RUNNING:
            return replace(record, ended=None, seconds=0.0)
        case TaskState.FAILED:
            why = f"The API key of {name} is invalid. (status 401, ERR_NGROK_203, op_2ABCDEFGH{place:03})"
            return replace(record, exit_code=6, reason=why, requests=1)
        case TaskState.STALE:
            why = f"TLSEdge/payments of {name}.example.com changed after it was reviewed"
            return replace(record, exit_code=3, reason=why)
        case TaskState.SKIPPED:
            return replace(record, attempts=0, started=None, ended=None, seconds=0.0, reason="the run ended before")
    return replace(record, exit_code=4, reason="the shape is not approved")


def roll_up(
    tasks: Sequence[TaskRecord],
    run: Run = RUN,
    waves: Sequence[Wave] = (Wave("all"),),
    *,
    now: float = NOON + 90,
    pause: Pause | None = None,
    shapes: Mapping[str, Shape] = SHAPES,
) -> RollUp:
    number = max((int(task.member.removeprefix("shop-")) for task in tasks), default=0)
    return build_rollup(fleet(number), replace(run, waves=tuple(waves)), tasks, shapes, now, pause)


ENDED = replace(RUN, state=RunState.SUCCEEDED, ended=NOON + 75)
PLANNED = roll_up(
    [
        *(task(place) for place in range(1, 8)),
        *(task(place, digest=WIDE) for place in (8, 9)),
        *(task(place, TaskState.FAILED) for place in range(10, 15)),
        replace(task(15), counts={}, changes={}, shape="", exit_code=0),
    ],
    ENDED,
)

WAVES = (
    Wave("canary", {"region": ("eu",)}, percent=10, min_success_time=3600),
    Wave("half", percent=50, max_failures=Amount(10, is_percent=True), approve=True),
    Wave("all"),
)
APPLY = replace(RUN, id="20261123-130000-c3d4", verb=RunVerb.APPLY, reviewed=RUN.id, approved_shapes=(PLAIN, WIDE))
APPLYING = roll_up(
    [
        *(task(place, digest=WIDE if place == 2 else PLAIN) for place in (1, 2)),
        *(task(place, TaskState.WAITING, wave=1) for place in range(3, 12)),
        *(task(place, TaskState.WAITING, wave=2) for place in range(12, 16)),
    ],
    APPLY,
    WAVES,
    now=NOON + 7200,
)
STOPPED = roll_up(
    [
        *(task(place) for place in (1, 2)),
        *(task(place, wave=1) for place in range(3, 9)),
        *(task(place, TaskState.FAILED, wave=1) for place in (9, 10)),
        task(11, TaskState.STALE, wave=1),
        *(task(place, TaskState.SKIPPED, wave=2) for place in range(12, 16)),
    ],
    replace(
        APPLY, state=RunState.FAILED, ended=NOON + 75, reason="wave half: 2 members failed, and max_failures allows 0"
    ),
    WAVES,
)
DRIFTED = roll_up(
    [
        *(replace(task(place), exit_code=2) for place in (1, 2)),
        *(replace(task(place, digest=OPENED), exit_code=2, counts={"added": 1}) for place in (3, 4)),
        *(replace(task(place), counts={}, shape="") for place in (5, 6)),
    ],
    replace(ENDED, verb=RunVerb.DRIFT),
)


DNS = Health(State.DEGRADED, "the certificate waits for DNS", "", Actor.ZONE_OWNER)


def with_health(place: int, *healths: Health, address: str = "ReservedDomain/agents") -> TaskRecord:
    """A task that found an object of the member with each of these healths."""
    rows = tuple(HealthRow(address, f"rd_{place}", health) for health in healths)
    degraded = any(health.state is State.DEGRADED for health in healths)
    code = exit_codes.DEGRADED if degraded else exit_codes.DONE
    return replace(
        task(place), counts={}, changes={}, shape="", exit_code=code, health=CheckedHealth(len(rows) + 1, rows)
    )


JUDGED = replace(ENDED, verb=RunVerb.DRIFT, health=True)


def without_record(place: int, target: str = "agents.cname.example") -> TaskRecord:
    """A task whose member has a host without its DNS record."""
    host = f"agents.shop-{place}.example.com"
    reason = f"the certificate of {host} waits for DNS since 2026-11-23 12:{place:02} UTC"
    return with_health(place, replace(DNS, reason=reason, advice=f"set {host} CNAME {target}"))


ILL = roll_up(
    [
        *(without_record(place) for place in range(1, 5)),
        with_health(5),
        with_health(6, Health(State.PROGRESSING, "no agent is connected", "start one", Actor.AGENT)),
        task(7, TaskState.FAILED),
    ],
    JUDGED,
)


def hostile_health(text: str) -> RollUp:
    """The text in every value from the platform, and in the names of members and projects."""
    health = replace(DNS, reason=f"x{text}", advice=f"x{text}")
    ill = [
        replace(with_health(place, health, address=f"ReservedDomain/x{text}"), project=f"p{text}") for place in (1, 2)
    ]
    other = replace(with_health(3, replace(health, advice="y")), project="q", member=f"m{text}")
    tasks = [*ill, other, replace(task(4, TaskState.FAILED), reason=f"x{text}")]
    return build_rollup(fleet(0), JUDGED, tasks, {}, NOON)


def hostile_run(text: str) -> RollUp:
    """The text in every value from a fleet file, the platform or a user."""
    named = replace(SHAPES[WIDE], plan=plan_json.write_plan(hostile.plan(text)))
    tasks = [
        replace(task(1, digest=WIDE), project=f"p{text}", worker=text),
        replace(task(2, TaskState.FAILED, digest=WIDE), reason=text),
        replace(task(3, TaskState.BLOCKED, wave=1), reason=f"a {text}"),
    ]
    run = replace(APPLY, fleet=f"x{text}", actor=f"x{text}", commit="c", reason=f"x{text}", state=RunState.FAILED)
    run = replace(run, waves=(Wave(f"x{text}"), Wave(f"y{text}", approve=True)))
    known = fleet(0)
    members = {name: Member(name, {f"x{text}": f"y{text}"}) for name in ("shop-1", "shop-2", "shop-3")}
    pause = Pause("shops", NOON, None, text, text)
    return build_rollup(replace(known, members=members), run, tasks, {WIDE: named}, NOON, pause)

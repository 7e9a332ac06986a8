"""A plan with many rows of each sort, also of sorts that the other examples lack."""

from __future__ import annotations

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Base, Call, Forecast, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.model.value import Hidden, Ref, Secret

CAUSES = (Cause.THIS_CHANGE, Cause.PENDING, Cause.DRIFT)
BACKEND = Address("TunnelGroupBackend", "web")


def at(line: int) -> Position:
    return Position("manifests/crowded.yaml", line, 1)


def list_access(number: int) -> tuple[AccessChange, ...]:
    """Entry points that let in others; each third one for another reason."""
    return tuple(
        AccessChange(
            f"https://host-{place}.example.com",
            (Verdict.WIDENS, Verdict.NARROWS, Verdict.EXPOSES)[place % 3],
            "10.0.0.0/8",
            f"192.0.{place}.0/24",
            f"`GET https://host-{place}.example.com/` from 192.0.{place}.1",
            place % 4 != 0,
            (f"IPPolicyRule/rule-{place}",),
            f"{place:016x}",
            ("not read: IPRestriction",) if place % 4 == 0 else (),
            CAUSES[place % 3],
            public=place % 2 == 0,
        )
        for place in range(number)
    )


def list_problems(number: int) -> tuple[Problem, ...]:
    severities = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    return tuple(
        Problem(
            "is deprecated" if place % 3 else "unknown field",
            "delete it" if place % 2 else "",
            f"IPPolicy/p-{place}.name",
            at(place + 1),
            severities[place % 3],
            confined=place % 6 == 0,
            code="unknown-field",
        )
        for place in range(number)
    )


def list_deletions(number: int) -> tuple[Change, ...]:
    return tuple(
        Change(
            Address(("BotUser", "ReservedDomain")[place % 2], f"old-{place}"),
            Action.DELETE,
            Reason.REMOVED,
            id=f"id_{place}",
            risks=(Risk.IRREVERSIBLE,) if place % 2 else (),
            identity={"name": f"old-{place}"},
            cause=CAUSES[place % 3],
        )
        for place in range(number)
    )


LONG = "word " * 60
LINES = "".join(f"line {number}\n" for number in range(40))
CHANGES = (
    *list_deletions(9),
    Change(
        BACKEND,
        Action.REPLACE,
        Reason.IMMUTABLE,
        id="bkdtg_1",
        order=Order.DELETE_FIRST,
        risks=(Risk.INTERRUPTS_TRAFFIC, Risk.IRREVERSIBLE),
        position=at(3),
        fields=(
            FieldChange(
                "labels",
                {"app": "a", "text": "two\nlines"},
                {"app": "b", "list": [1, {"x": LONG}]},
                ChangedBy.GIT,
                True,
            ),
            FieldChange("description", LONG, LONG.replace("word", "other", 1), ChangedBy.BOTH),
            FieldChange("metadata", LINES, LINES.replace("line 20\n", "line twenty\n"), ChangedBy.GIT),
            FieldChange("note", None, LINES, ChangedBy.GIT),
            FieldChange("token", Hidden("0a1b"), Secret("canary", "env:TOKEN"), ChangedBy.GIT),
            FieldChange("same", "text", "text", ChangedBy.PLATFORM),
            FieldChange("gone", [], None, ChangedBy.PLATFORM),
        ),
        cause=Cause.THIS_CHANGE,
    ),
    *(
        Change(
            Address("TLSEdge", f"edge-{place}"),
            (Action.UPDATE, Action.CREATE, Action.ADOPT, Action.FORGET)[place % 4],
            (Reason.FIELDS, Reason.DECLARED, Reason.DECLARED, Reason.REMOVED)[place % 4],
            id=f"edgtls_{place}",
            position=at(10 + place),
            risks=(Risk.WIDENS_ACCESS,) if place % 5 == 0 else (),
            fields=(FieldChange("backend.backend_id", None, Ref(BACKEND), ChangedBy.GIT),) if place % 4 < 2 else (),
            parent=Address("HTTPSEdge", "web") if place % 3 == 0 else None,
            cause=CAUSES[place % 3],
        )
        for place in range(16)
    ),
)
CROWDED = Plan(
    "prod",
    rule_changes=tuple(
        RuleChange(
            risk,
            "guards",
            f"guards.{name}",
            10 + place,
            None if place else 100,
            f"d{place}",
            at(place + 1) if place else None,
        )
        for place, (risk, name) in enumerate(
            zip(RuleRisk, ("max_delete_percent", "max_update_percent", "require_approval"), strict=False)
        )
    ),
    access=list_access(13),
    changes=CHANGES,
    problems=list_problems(9),
    calls=tuple(
        Call(
            f"delete {place}",
            change.address,
            Verb.DELETE,
            f"/things/{change.id}",
            needs=(f"delete {place - 1}",) if place % 2 else (),
        )
        for place, change in enumerate(list_deletions(9))
    ),
    approvals=(
        Approval("delete", "BotUser", 15, "deletes", items=(ApprovalItem("BotUser/old-0", "id_0", "aa"),)),
        Approval("delete", "ReservedDomain", 15, "irreversible: cannot be recovered after deletion", granted=True),
        Approval(
            "widens_access",
            "TLSEdge",
            4,
            "widens access",
            items=(ApprovalItem("TLSEdge/edge-0", "edgtls_0", "bb"), ApprovalItem("TLSEdge/edge-5", "", "cc")),
        ),
        Approval("update", "*", 12, "more than 20 % of the resources", parts=2, is_optional=True),
        Approval("overwrite", "TLSEdge/edge-4", 1, "was changed on the platform", is_pending=True),
    ),
    additions=tuple(
        Change(
            Address("IPPolicyRule", f"ipr_{place}"),
            Action.DELETE,
            Reason.ADDED,
            id=f"ipr_{place}",
            parent=Address("IPPolicy", "office") if place else None,
            fields=(FieldChange("cidr", "10.0.0.0/8", None, ChangedBy.PLATFORM),),
            cause=CAUSES[place % 3],
        )
        for place in range(3)
    ),
    unmanaged=tuple(("BotUser", f"bot_{place}") for place in range(30)),
    elsewhere={f"stack-{place}": (("BotUser", f"bot_{place}"),) for place in range(4)},
    targets=("TLSEdge/*", "BotUser/*"),
    excludes=("IPPolicy/x",),
    forecast=Forecast(30, 4000.0),
    base=Base("origin/main", "abcdef0123456789", withdrawn=(Change(BACKEND, Action.DELETE, Reason.REMOVED),)),
    commit="0123456789abcdef",
    created=1_700_000_000.0,
    account="https://api.example.com",
    environment="prod",
)

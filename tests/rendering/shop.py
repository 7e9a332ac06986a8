"""The pull request that the images of the documentation show: one branch, planned for two environments."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Base, Forecast, Plan, Users
from reconciler.model.problem import Position
from reconciler.model.value import Ref
from reconciler.operations.run_context import read_run_context

ADMIN = Address("HTTPSEdgeRoute", "shop-admin")
BLUE, GREEN = Address("TunnelGroupBackend", "shop-blue"), Address("TunnelGroupBackend", "shop-green")
EDGE = Address("HTTPSEdge", "shop")
LEGACY = Address("ReservedDomain", "legacy")
RULE = Address("IPPolicyRule", "office-rome")
OFFICE = Address("IPPolicy", "office")
ROUTE = Address("HTTPSEdgeRoute", "shop")
_COMMIT = "d79a134523fe8aa07c1b2a6f5d0e4b3c2a190817"
_CREATED = 1_795_600_000.0
_ID = "2ZQbGvLdDUpPUpDlTeUWVVHqSZ"

CONTEXT = read_run_context(
    {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "acme/tunnels",
        "GITHUB_ACTOR": "mara",
        "GITHUB_REF": "refs/pull/128/merge",
        "GITHUB_RUN_ID": "4711",
        "GITHUB_WORKFLOW": "Plan",
    },
    commit=_COMMIT,
)


def _at(line: int) -> Position:
    return Position("manifests/shop.yaml", line, 3)


def _field(path: str, old: object, new: object) -> FieldChange:
    return FieldChange(path, old, new, ChangedBy.GIT, cause=Cause.THIS_CHANGE)


def _changes(environment: str, domain: str) -> tuple[Change, ...]:
    this = Cause.THIS_CHANGE
    return (
        Change(
            LEGACY,
            Action.DELETE,
            Reason.REMOVED,
            id=f"rd_{_ID}{environment[0]}",
            risks=(Risk.IRREVERSIBLE,),
            identity={"domain": f"legacy.{domain}"},
            cause=this,
        ),
        Change(
            ADMIN,
            Action.UPDATE,
            Reason.FIELDS,
            id=f"edghtsrt_{_ID}2",
            position=_at(31),
            fields=(_field("ip_restriction.ip_policy_ids", [f"ipp_{_ID}3"], [f"ipp_{_ID}3", f"ipp_{_ID}4"]),),
            risks=(Risk.WIDENS_ACCESS,),
            cause=this,
        ),
        Change(
            GREEN,
            Action.CREATE,
            Reason.DECLARED,
            position=_at(12),
            fields=(_field("labels", None, {"app": "shop", "color": "green"}),),
            cause=this,
        ),
        Change(
            ROUTE,
            Action.UPDATE,
            Reason.FIELDS,
            id=f"edghtsrt_{_ID}5",
            position=_at(24),
            fields=(_field("backend.backend_id", f"bkdtg_{_ID}6", Ref(GREEN)),),
            cause=this,
        ),
        Change(
            RULE,
            Action.UPDATE,
            Reason.FIELDS,
            id=f"ipr_{_ID}7",
            position=_at(45),
            fields=(_field("cidr", "203.0.113.0/25", "203.0.113.0/24"),),
            cause=this,
        ),
    )


def _plan(environment: str, domain: str) -> Plan:
    opened = AccessChange(
        f"https://{domain}/admin…",
        Verdict.WIDENS,
        "203.0.113.0/24",
        "203.0.113.0/24, 198.51.100.0/24",
        f"`GET https://{domain}/admin` from 198.51.100.1",
        is_certain=True,
        causes=(str(ADMIN),),
        digest="77aa0b1c2d3e4f50" if environment == "staging" else "1b7e6d5c4f3a2910",
        cause=Cause.THIS_CHANGE,
    )
    return Plan(
        f"shop-{environment}",
        environment=environment,
        access=(opened,),
        changes=_changes(environment, domain),
        approvals=(
            Approval(
                "delete",
                "ReservedDomain",
                1,
                "irreversible: cannot be recovered after deletion",
                items=(
                    ApprovalItem(
                        str(LEGACY), f"rd_{_ID}{environment[0]}", "3f2a9c" if environment == "staging" else "8d01e7"
                    ),
                ),
            ),
            Approval(
                "widens_access",
                "*",
                1,
                "widens access",
                items=(ApprovalItem(opened.entry_point, "", opened.digest),),
            ),
        ),
        users={
            ADMIN: Users((EDGE,), 1),
            ROUTE: Users((EDGE,), 1),
            RULE: Users((OFFICE, ADMIN, EDGE), 3),
        },
        names={f"ipp_{_ID}3": str(OFFICE), f"ipp_{_ID}4": "IPPolicy/vpn", f"bkdtg_{_ID}6": str(BLUE)},
        account="https://api.example.com",
        commit=_COMMIT,
        created=_CREATED,
        forecast=Forecast(6, 0.0),
        base=Base("main", "c113b3e0d5f6a7b8c9d0e1f2a3b4c5d6e7f80910"),
    )


_DRIFT = FieldChange("description", "Shop (edited by hand)", "Shop", ChangedBy.PLATFORM, cause=Cause.DRIFT)
STAGING = _plan("staging", "shop-staging.example.com")
PRODUCTION = _plan("production", "shop.example.com")
PRODUCTION = replace(
    PRODUCTION,
    changes=(
        *PRODUCTION.changes,
        Change(
            EDGE,
            Action.UPDATE,
            Reason.FIELDS,
            id=f"edghts_{_ID}8",
            position=_at(18),
            fields=(_DRIFT,),
            cause=Cause.DRIFT,
        ),
    ),
)

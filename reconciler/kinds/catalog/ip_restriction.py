"""IP restriction."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, Description, Id, Metadata
from reconciler.model.access import Restriction
from reconciler.model.fields.annotations import Immutable, ReadAs, RefTo, Unordered
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class IPRestriction(Spec):
    """Restricts the source addresses that may access one part of the account. An account has at most one of each
    type."""

    type: Annotated[
        Literal["dashboard", "api", "agent", "endpoints"],
        Deferred,
        Immutable,
        Doc("What is restricted: the dashboard, the management API, agent connections or all endpoints."),
    ]
    ip_policy_ids: Annotated[
        list[Annotated[Id, RefTo("IPPolicy")]],
        ReadAs("ip_policies[].id"),
        Unordered,
        Doc("The IP policies that decide which source addresses are allowed. At least one."),
    ]
    enforced: Annotated[
        bool, Doc("Whether other source addresses are rejected. If false, the platform only issues warnings.")
    ] = False
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        if not self.ip_policy_ids:
            yield Finding(("ip_policy_ids",), "is empty", "list at least one IP policy", code="empty-list")


def _needs_rules(fields: Mapping[str, Any]) -> bool:
    """Whether the IP policies must have a rule at any moment.

    The platform refuses to delete the last rule of a dashboard policy (1419). An enforced restriction of the API
    without rules rejects all further calls, including the one that would create a rule.
    """
    return fields.get("type") == "dashboard" or (fields.get("type") == "api" and fields.get("enforced") is True)


KIND = Kind(
    spec=IPRestriction,
    path="/ip_restrictions",
    list_key="ip_restrictions",
    id_prefix="ipx_",
    identity=("type",),
    unique=True,
    # A restriction whose IP policies have no rules would block all access, including that of this program.
    part_kinds=("IPPolicyRule",),
    requires_parts=_needs_rules,
    access=Restriction(),
    example="""
        type: api
        enforced: true
        ip_policy_ids: [{ref: IPPolicy/office}]
    """,
)

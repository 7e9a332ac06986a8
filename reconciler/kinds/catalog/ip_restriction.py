"""IP restriction."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, Description, Id, Metadata
from reconciler.model.fields.annotations import Immutable, ReadAs, RefTo, Unordered
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class IPRestriction(Spec):
    """Which source addresses may reach one part of the account. There is at most one for each type."""

    type: Annotated[Literal["dashboard", "api", "agent", "endpoints"], Deferred, Immutable, Doc("What it guards.")]
    ip_policy_ids: Annotated[
        list[Annotated[Id, RefTo("IPPolicy")]],
        ReadAs("ip_policies[].id"),
        Unordered,
        Doc("The IP policies that decide; at least one."),
    ]
    enforced: Annotated[bool, Doc("Whether it is enforced; otherwise it only warns.")] = False
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        if not self.ip_policy_ids:
            yield Finding(("ip_policy_ids",), "is empty", "name at least one IP policy", code="empty-list")


def _needs_rules(fields: Mapping[str, Any]) -> bool:
    """The platform keeps the last rule of the dashboard's policies; without those of the API nothing more gets through
    to it, a new rule included."""
    return fields.get("type") == "dashboard" or (fields.get("type") == "api" and fields.get("enforced") is True)


KIND = Kind(
    spec=IPRestriction,
    path="/ip_restrictions",
    list_key="ip_restrictions",
    id_prefix="ipx_",
    identity=("type",),
    unique=True,
    # By policies without their rules it would shut out everybody, whoever applies this included.
    part_kinds=("IPPolicyRule",),
    requires_parts=_needs_rules,
    example="""
        type: api
        enforced: true
        ip_policy_ids: [{ref: IPPolicy/office}]
    """,
)

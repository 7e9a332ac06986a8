"""Rule of an IP policy."""

from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Cidr, Deferred, Description, Id, Metadata
from reconciler.model.access import NetworkRule
from reconciler.model.fields.annotations import Immutable, ReadAs, RefTo
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind, PartOf


class IPPolicyRule(Spec):
    """Allows or denies one network in an IP policy."""

    ip_policy_id: Annotated[
        Id, RefTo("IPPolicy"), ReadAs("ip_policy.id"), Immutable, Doc("The IP policy that the rule belongs to.")
    ]
    cidr: Annotated[
        Cidr,
        Doc(
            "The network in CIDR notation, IPv4 or IPv6, such as `203.0.113.0/24`. The address must be the "
            "first of the network."
        ),
    ]
    action: Annotated[
        Literal["allow", "deny"], Deferred, Immutable, Doc("Whether traffic from the network is allowed or denied.")
    ]
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=IPPolicyRule,
    path="/ip_policy_rules",
    list_key="ip_policy_rules",
    id_prefix="ipr_",
    identity=("ip_policy_id", "cidr"),
    unique=True,
    part_of=PartOf("IPPolicy", field="ip_policy_id", inline="rules"),
    display_fields=("action",),
    access=NetworkRule(),
    example="""
        ip_policy_id: {ref: IPPolicy/office}
        cidr: 203.0.113.0/24
        action: allow
    """,
)

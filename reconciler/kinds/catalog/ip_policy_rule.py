"""Rule of an IP policy."""

from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Cidr, Deferred, Description, Id, Metadata
from reconciler.model.fields.annotations import Immutable, ReadAs, RefTo
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind, PartOf


class IPPolicyRule(Spec):
    """One network that an IP policy allows or denies."""

    ip_policy_id: Annotated[Id, RefTo("IPPolicy"), ReadAs("ip_policy.id"), Immutable, Doc("The policy it belongs to.")]
    cidr: Annotated[Cidr, Doc("The network, by its first address and its mask.")]
    action: Annotated[Literal["allow", "deny"], Deferred, Immutable, Doc("What happens to traffic from there.")]
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=IPPolicyRule,
    path="/ip_policy_rules",
    list_key="ip_policy_rules",
    id_prefix="ipr_",
    identity=("ip_policy_id", "cidr"),
    unique=True,
    part_of=PartOf("IPPolicy", field="ip_policy_id"),
    example="""
        ip_policy_id: {ref: IPPolicy/office}
        cidr: 203.0.113.0/24
        action: allow
    """,
)

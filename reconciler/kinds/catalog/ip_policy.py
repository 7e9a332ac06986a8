"""IP policy."""

from reconciler.kinds.types.fields import Description, Metadata
from reconciler.model.access import NetworkPolicy
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class IPPolicy(Spec):
    """A set of IP policy rules. IP restrictions and the module `ip_restriction` refer to it."""

    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=IPPolicy,
    path="/ip_policies",
    list_key="ip_policies",
    id_prefix="ipp_",
    access=NetworkPolicy(),
    example="""
        description: Networks of the office
    """,
)

"""IP policy."""

from reconciler.kinds.types.fields import Description, Metadata
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class IPPolicy(Spec):
    """A named set of IP policy rules, for restrictions and modules to refer to."""

    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=IPPolicy,
    path="/ip_policies",
    list_key="ip_policies",
    id_prefix="ipp_",
    example="""
        description: Networks of the office
    """,
)

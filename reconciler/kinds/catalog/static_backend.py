"""Static backend."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Metadata, Reachable
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind


class StaticTLS(Part):
    """Whether the address is reached by TLS."""

    enabled: Annotated[bool, Doc("Whether the platform speaks TLS to the address.")] = False


class StaticBackend(Spec):
    """Sends traffic to one address that the platform reaches by itself, without an agent."""

    address: Annotated[Reachable, Doc("Where the traffic goes, as host:port.")]
    tls: StaticTLS = StaticTLS()
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=StaticBackend,
    path="/backends/static",
    list_key="backends",
    id_prefix="bkdsc_",
    carries_traffic=True,
    example="""
        address: origin.example.com:443
        tls: {enabled: true}
    """,
)

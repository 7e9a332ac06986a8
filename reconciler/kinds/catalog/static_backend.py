"""Static backend."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Metadata, Reachable
from reconciler.model.access import Upstream
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind


class StaticTLS(Part):
    """TLS settings of the connection to the address."""

    enabled: Annotated[bool, Doc("Whether the platform connects to the address with TLS.")] = False


class StaticBackend(Spec):
    """Sends traffic to an address that the platform connects to directly, without an agent."""

    address: Annotated[Reachable, Doc("The address to send traffic to, as `host:port`.")]
    tls: StaticTLS = StaticTLS()
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=StaticBackend,
    path="/backends/static",
    list_key="backends",
    id_prefix="bkdsc_",
    display_fields=("address",),
    access=Upstream(),
    example="""
        address: origin.example.com:443
        tls: {enabled: true}
    """,
)

"""Reserved address."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Id, Metadata, Region
from reconciler.model.fields.annotations import Detach, Immutable, InputOnly, ReadAs, ServerDefault, UpdateOnly
from reconciler.model.fields.spec import Read, Ref, Spec
from reconciler.model.kind import Kind


class ReservedAddress(Spec):
    """A host and port for TCP, kept for the account. The platform picks it; other resources refer to its `addr`."""

    # A server default, though documented: an address adopted from elsewhere must not be given up for want of a line.
    region: Annotated[Region, Immutable, ServerDefault, Doc("Where the address is.")] = "us"
    description: Description = ""
    metadata: Metadata = ""
    endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        InputOnly,  # lists do not show it
        ReadAs("endpoint_configuration.id"),
        Detach("endpoint_configuration"),
        Doc("The endpoint configuration for the address."),
    ] = None


class ReservedAddressRead(Read):
    addr: str = ""
    endpoint_configuration: Ref | None = None


KIND = Kind(
    spec=ReservedAddress,
    read=ReservedAddressRead,
    path="/reserved_addrs",
    list_key="reserved_addrs",
    id_prefix="ra_",
    irreplaceable=True,
    carries_traffic=True,
    host="addr",
    example="""
        region: eu
        description: SSH to the build machines
    """,
)

"""Reserved address."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Id, Metadata, Region
from reconciler.model.access import Name
from reconciler.model.fields.annotations import Detach, Immutable, InputOnly, ReadAs, ServerDefault, UpdateOnly
from reconciler.model.fields.spec import Read, Ref, Spec
from reconciler.model.kind import Kind


class ReservedAddress(Spec):
    """A TCP address (host and port) reserved for the account. The platform assigns it; other resources refer to the
    output `addr`."""

    # A server default although it is documented: otherwise, adopting an address of another region by a declaration
    # without `region` would plan to replace the address.
    region: Annotated[Region, Immutable, ServerDefault, Doc("The region of the address.")] = "us"
    description: Description = ""
    metadata: Metadata = ""
    endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        InputOnly,  # lists are not documented to show it
        ReadAs("endpoint_configuration.id"),
        Detach("endpoint_configuration"),
        Doc("The id of the endpoint configuration for the address."),
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
    access=Name(),
    host="addr",
    display_fields=("addr",),
    example="""
        region: eu
        description: SSH to the build machines
    """,
)

"""Tunnel-group backend."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import serving
from reconciler.kinds.types.fields import Description, Metadata, Text
from reconciler.model.access import Upstream
from reconciler.model.fields.spec import Read, Ref, Spec
from reconciler.model.kind import Kind


class TunnelGroupBackend(Spec):
    """Distributes traffic among the tunnels that have its labels."""

    labels: Annotated[dict[str, Text], Doc("The labels that a tunnel must have.")] = {}
    description: Description = ""
    metadata: Metadata = ""


class TunnelGroupBackendRead(Read):
    tunnels: list[Ref] = []


KIND = Kind(
    spec=TunnelGroupBackend,
    read=TunnelGroupBackendRead,
    path="/backends/tunnel_group",
    list_key="backends",
    id_prefix="bkdtg_",
    display_fields=("labels",),
    access=Upstream(is_documented=lambda fields: bool(fields["labels"])),
    health=serving.check_tunnels,
    example="""
        labels: {service: payments}
    """,
)

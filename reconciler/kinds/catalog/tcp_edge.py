"""TCP edge."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import serving
from reconciler.kinds.types.fields import Description, Hostports, Metadata
from reconciler.kinds.types.modules import BackendModule, IPRestrictionModule, TrafficPolicyModule
from reconciler.model.access import WayIn, read_texts
from reconciler.model.fields.annotations import Exclusive, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.value import Json


class TCPEdge(Spec):
    """Serves TCP connections on reserved addresses."""

    description: Description = ""
    metadata: Metadata = ""
    hostports: Annotated[Hostports, Unordered, Exclusive, Doc("The reserved addresses to serve, as `host:port`.")] = []
    backend: BackendModule | None = None
    ip_restriction: IPRestrictionModule | None = None
    traffic_policy: TrafficPolicyModule | None = None


class TCPEdgeRead(Read):
    policy: Annotated[Json, Doc("A retired module; always null.")] = None


KIND = Kind(
    spec=TCPEdge,
    read=TCPEdgeRead,
    path="/edges/tcp",
    list_key="tcp_edges",
    id_prefix="edgtcp_",
    display_fields=("hostports",),
    part_kinds=("IPPolicyRule",),  # an IP policy without all of its rules may admit any address
    access=WayIn(lambda fields: (f"tcp://{hostport}" for hostport in read_texts(fields["hostports"]))),
    health=serving.check_edge,
    example="""
        hostports: ["${{ ReservedAddress/ssh.addr }}"]
        backend: {backend_id: {ref: TunnelGroupBackend/ssh}}
        ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}
    """,
)

"""TLS edge."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import serving
from reconciler.kinds.types.fields import Description, HttpsHostports, Metadata
from reconciler.kinds.types.modules import (
    BackendModule,
    IPRestrictionModule,
    MutualTLSModule,
    TLSTerminationModule,
    TrafficPolicyModule,
    check_upstream_modules,
)
from reconciler.model.access import WayIn, read_texts
from reconciler.model.fields.annotations import Exclusive, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Endpoint, Kind, Modules
from reconciler.model.problem import Finding
from reconciler.model.value import Json


class TLSEdge(Spec):
    """Serves TLS on reserved domains, terminated at the edge or upstream."""

    description: Description = ""
    metadata: Metadata = ""
    hostports: Annotated[
        HttpsHostports, Unordered, Exclusive, Doc("The reserved domains to serve, as `host:443`.")
    ] = []
    backend: BackendModule | None = None
    ip_restriction: IPRestrictionModule | None = None
    mutual_tls: MutualTLSModule | None = None
    tls_termination: TLSTerminationModule | None = None
    traffic_policy: TrafficPolicyModule | None = None

    def findings(self) -> Iterator[Finding]:
        yield from check_upstream_modules(
            self.tls_termination,
            mutual_tls=self.mutual_tls,
            traffic_policy=self.traffic_policy,
        )


class TLSEdgeRead(Read):
    policy: Annotated[Json, Doc("A retired module; always null.")] = None


KIND = Kind(
    spec=TLSEdge,
    read=TLSEdgeRead,
    path="/edges/tls",
    list_key="tls_edges",
    id_prefix="edgtls_",
    display_fields=("hostports",),
    part_kinds=("IPPolicyRule",),  # an IP policy without all of its rules may admit any address
    modules=Modules(remove_before={"tls_termination.terminate_at": "upstream"}),
    endpoint=Endpoint(beside_https=True),
    access=WayIn(lambda fields: (f"tls://{hostport}" for hostport in read_texts(fields["hostports"]))),
    health=serving.check_edge,
    example="""
        hostports: ["payments.example.com:443"]
        backend: {backend_id: {ref: FailoverBackend/payments}}
        mutual_tls: {certificate_authority_ids: [{ref: CertificateAuthority/partners}]}
        tls_termination: {terminate_at: edge, min_version: "1.3"}
    """,
)

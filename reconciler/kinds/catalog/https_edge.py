"""HTTPS edge."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import access, serving
from reconciler.kinds.types.fields import Description, HttpsHostports, Metadata, TlsVersion
from reconciler.kinds.types.modules import MutualTLSModule
from reconciler.model.access import WayIn, read_texts
from reconciler.model.fields.annotations import Exclusive, ServerDefault, Unordered
from reconciler.model.fields.spec import Module, Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.value import Json


class HTTPSTerminationModule(Module):
    """TLS settings of an HTTPS edge, which always terminates TLS itself."""

    min_version: Annotated[
        TlsVersion | None,
        ServerDefault,
        access.TLS_VERSION,
        Doc("The lowest TLS version to accept, such as `1.2`. If not set, the platform chooses one."),
    ] = None


class HTTPSEdge(Spec):
    """Serves HTTPS on reserved domains. Its routes (`HTTPSEdgeRoute`) handle the requests."""

    description: Description = ""
    metadata: Metadata = ""
    hostports: Annotated[
        HttpsHostports, Unordered, Exclusive, Doc("The reserved domains to serve, as `host:443`.")
    ] = []
    mutual_tls: MutualTLSModule | None = None
    tls_termination: HTTPSTerminationModule | None = None


class HTTPSEdgeRead(Read):
    routes: Annotated[list[Json], Doc("The routes of the edge, as complete objects.")] = []


KIND = Kind(
    spec=HTTPSEdge,
    read=HTTPSEdgeRead,
    path="/edges/https",
    list_key="https_edges",
    id_prefix="edghts_",
    display_fields=("hostports",),
    access=WayIn(
        lambda fields: (f"https://{hostport}" for hostport in read_texts(fields["hostports"])),
        redirects=lambda fields: (f"http://{text.split(':')[0]}" for text in read_texts(fields["hostports"])),
    ),
    health=serving.check_edge_of_routes,
    example="""
        hostports: ["app.example.com:443"]
        tls_termination: {min_version: "1.2"}
    """,
)

"""Failover backend."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import serving
from reconciler.kinds.types.fields import BackendId, Description, Metadata
from reconciler.model.access import Upstream, read_texts
from reconciler.model.fields.annotations import AlwaysSent
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class FailoverBackend(Spec):
    """Sends traffic to the first available backend of a list."""

    backends: Annotated[list[BackendId], AlwaysSent, Doc("The backends, in the order in which they are tried.")] = []
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=FailoverBackend,
    path="/backends/failover",
    list_key="backends",
    id_prefix="bkdfo_",
    access=Upstream(lambda fields: [(child, True) for child in read_texts(fields["backends"])]),
    health=lambda body, facts: serving.check_children(iter(read_texts(body.get("backends"))), body, facts),
    example="""
        backends:
          - {ref: TunnelGroupBackend/payments}
          - {ref: HTTPResponseBackend/sorry}
    """,
)

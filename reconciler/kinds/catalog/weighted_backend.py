"""Weighted backend."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import serving
from reconciler.kinds.types.fields import BackendId, Description, Metadata, find_repeated
from reconciler.model.access import Fields, Upstream, read_list
from reconciler.model.fields.annotations import AlwaysSent, AsMap, Between, Unordered
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.health import AccountFacts, Body, Health
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class Weight(Part):
    """A backend and its weight."""

    backend_id: Annotated[BackendId, Doc("The backend.")]
    weight: Annotated[
        int, Between(0, 10_000), Doc("The weight of the backend, relative to the weights of the other backends.")
    ]


class WeightedBackend(Spec):
    """Distributes traffic among its backends in proportion to their weights."""

    backends: Annotated[
        list[Weight], AsMap("backend_id", "weight"), Unordered, AlwaysSent, Doc("The backends with their weights.")
    ] = []
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        yield from find_repeated([backend.backend_id for backend in self.backends], "backends")


def _read_children(fields: Fields) -> Iterator[tuple[str, bool]]:
    """The backends, and whether each surely gets traffic: what weight 0 means is not documented."""
    for part in read_list(fields["backends"]):
        if isinstance(part, dict):
            yield str(part.get("backend_id")), part.get("weight") != 0


def _check_backend(body: Body, facts: AccountFacts) -> Health:
    """The backends that have a weight: responses have a map from each backend to its weight."""
    weights = body.get("backends")
    weighted = [id for id, weight in weights.items() if weight != 0] if isinstance(weights, dict) else []
    return serving.check_children(iter(weighted), body, facts)


KIND = Kind(
    spec=WeightedBackend,
    path="/backends/weighted",
    list_key="backends",
    id_prefix="bkdwd_",
    access=Upstream(_read_children),
    health=_check_backend,
    example="""
        backends:
          - {backend_id: {ref: TunnelGroupBackend/stable}, weight: 95}
          - {backend_id: {ref: TunnelGroupBackend/canary}, weight: 5}
    """,
)

"""Kinds that can be listed but not declared: tunnels, agent sessions, endpoints, users, Kubernetes operators.

Manifests may refer to objects of these kinds; plans never change them. Kinds that can be declared are in `catalog`.
"""

from collections.abc import Callable
from functools import cache

from reconciler import kinds
from reconciler.kinds.catalog.bot_user import BotUser
from reconciler.kinds.catalog.cloud_endpoint import CloudEndpointRead
from reconciler.kinds.rules import serving
from reconciler.model.fields.spec import Part, Read, Ref, Spec
from reconciler.model.health import AccountFacts, Body, Health
from reconciler.model.kind import Kind, Wire
from reconciler.model.value import Json


class Tunnel(Spec):
    """A tunnel that an agent has open."""


class TunnelRead(Read):
    public_url: str = ""
    started_at: str = ""
    proto: str = ""
    region: str = ""
    metadata: str = ""
    tunnel_session: Ref | None = None
    endpoint: Ref | None = None
    labels: dict[str, str] = {}
    backends: list[Ref] = []
    forwards_to: str = ""


class TunnelSession(Spec):
    """An agent's connection to the platform."""


class TunnelSessionRead(Read):
    agent_version: str = ""
    credential: Ref | None = None
    ip: str = ""
    metadata: str = ""
    os: str = ""
    region: str = ""
    started_at: str = ""
    transport: str = ""


class Endpoint(Spec):
    """An active endpoint: of an agent, of an edge, or a cloud endpoint."""


class EndpointRead(CloudEndpointRead):
    type: str = ""
    url: str = ""
    description: str = ""
    metadata: str = ""
    traffic_policy: str = ""
    bindings: list[str] = []
    created_at: str = ""
    pooling_enabled: bool = False


class ApplicationUser(Spec):
    """A user who authenticated at an endpoint."""


class ApplicationUserRead(Read):
    created_at: str = ""
    identity_provider: Json = None
    provider_user_id: str = ""
    username: str = ""
    email: str = ""
    name: str = ""
    last_active: str = ""
    last_login: str = ""


class ApplicationSession(Spec):
    """A session of a user who authenticated at an endpoint."""


class ApplicationSessionRead(Read):
    created_at: str = ""
    public_url: str = ""
    browser_session: Json = None
    application_user: Ref | None = None
    last_active: str = ""
    expires_at: str = ""
    endpoint: Ref | None = None
    edge: Ref | None = None
    route: Ref | None = None


class OperatorDeployment(Part):
    """The Kubernetes deployment of an operator."""

    name: str = ""
    namespace: str = ""
    version: str = ""
    cluster_name: str = ""


class OperatorBinding(Part):
    """The endpoints that an operator makes available in its cluster, and its request for a certificate (`csr`)."""

    endpoint_selectors: list[str] = []
    csr: str = ""


class KubernetesOperator(Spec):
    """The operator of a Kubernetes cluster. Operators register themselves."""

    description: str = ""
    metadata: str = ""
    enabled_features: list[str] = []
    region: str = "global"
    deployment: OperatorDeployment | None = None
    binding: OperatorBinding | None = None


class KubernetesOperatorRead(Read):
    created_at: str = ""
    updated_at: str = ""
    principal: Ref | None = None


class AbuseReport(Spec):
    """A report of URLs that violate the terms of the platform."""

    urls: list[str] = []
    metadata: str = ""


class AbuseReportRead(Read):
    created_at: str = ""
    status: str = ""
    hostnames: list[Json] = []


def _kind(
    spec: type[Spec],
    read: type[Read],
    path: str,
    list_key: str,
    prefix: str,
    *offers: str,
    health: Callable[[Body, AccountFacts], Health] | None = None,
) -> Kind:
    wire = Wire(untimed="created_at" not in read.model_fields, supports=offers)
    return Kind(spec, path, list_key, prefix, read, wire=wire, health=health)


ENDPOINT = _kind(Endpoint, EndpointRead, "/endpoints", "endpoints", "ep_")

KINDS = (
    _kind(ApplicationSession, ApplicationSessionRead, "/app/sessions", "application_sessions", "as_", "delete"),
    _kind(ApplicationUser, ApplicationUserRead, "/app/users", "application_users", "au_", "delete"),
    ENDPOINT,
    _kind(
        KubernetesOperator,
        KubernetesOperatorRead,
        "/kubernetes_operators",
        "operators",
        "k8sop_",
        "create",
        "update",
        "delete",
        health=serving.check_operator,
    ),
    _kind(Tunnel, TunnelRead, "/tunnels", "tunnels", "tn_"),
    _kind(TunnelSession, TunnelSessionRead, "/tunnel_sessions", "tunnel_sessions", "ts_", "restart", "stop", "update"),
)


class ServiceUser(BotUser):
    """A bot user in the public platform's collection, in which its id has another prefix."""


SERVICE_USER = Kind(ServiceUser, "/service_users", "service_users", "service_", identity=("name",), unique=True)

# Has no list operation: a report is submitted, and read by its id.
_ABUSE_REPORT = _kind(AbuseReport, AbuseReportRead, "/abuse_reports", "", "abrp_", "create")


@cache
def list_served() -> tuple[Kind, ...]:
    """One kind for each collection of the platform: the declarable kinds, and the kinds that can only be read."""
    paths = {kind.path for kind in kinds.every()}
    return (*kinds.every(), SERVICE_USER, *(kind for kind in KINDS if kind.path not in paths), _ABUSE_REPORT)


def find(name: str) -> Kind | None:
    """The kind with this name among the kinds that can be listed; None if there is none."""
    return next((kind for kind in (*KINDS, *kinds.list_planned()) if kind.name == name), None)

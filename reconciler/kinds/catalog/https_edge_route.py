"""Route of an HTTPS edge."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import serving, syntax
from reconciler.kinds.types.auth_modules import OAuthModule, OIDCModule, SAMLModule
from reconciler.kinds.types.fields import Deferred, Description, Id, Metadata, check_with
from reconciler.kinds.types.modules import BackendModule, IPRestrictionModule, TrafficPolicyModule
from reconciler.kinds.types.route_modules import (
    CircuitBreakerModule,
    CompressionModule,
    HeadersModule,
    UserAgentModule,
    WebhookVerificationModule,
    WebsocketModule,
)
from reconciler.model.access import PathOf
from reconciler.model.fields.annotations import Immutable, PathOnly, RefTo
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind, Modules, Parent
from reconciler.model.problem import Finding
from reconciler.model.value import Json

_LOGINS = ("saml", "oidc", "oauth")


class HTTPSEdgeRoute(Spec):
    """Handles the requests of an HTTPS edge that match a path. A declaration with `id` and without `match` manages only
    the modules of an existing route."""

    edge_id: Annotated[Id, PathOnly, Immutable, RefTo("HTTPSEdge"), Doc("The HTTPS edge that the route belongs to.")]
    match_type: Annotated[
        Annotated[Literal["exact_path", "path_prefix"], Deferred] | None,
        Doc("How `match` is compared with the path of a request. Required unless `id` is set."),
    ] = None
    match: Annotated[
        Annotated[str, check_with(syntax.route_path), Deferred] | None,
        Doc("The path to match; it begins with a slash. Required unless `id` is set."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""
    backend: BackendModule | None = None
    ip_restriction: IPRestrictionModule | None = None
    saml: SAMLModule | None = None
    oidc: OIDCModule | None = None
    oauth: OAuthModule | None = None
    webhook_verification: WebhookVerificationModule | None = None
    user_agent_filter: UserAgentModule | None = None
    circuit_breaker: CircuitBreakerModule | None = None
    request_headers: Annotated[HeadersModule | None, Doc("Headers to add to and to remove from each request.")] = None
    response_headers: Annotated[HeadersModule | None, Doc("Headers to add to and to remove from each response.")] = None
    compression: CompressionModule | None = None
    websocket_tcp_converter: WebsocketModule | None = None
    traffic_policy: TrafficPolicyModule | None = None

    def findings(self) -> Iterator[Finding]:
        first, *more = [name for name in _LOGINS if getattr(self, name) is not None] or [""]
        for name in more:
            yield Finding(
                (name,),
                f"cannot be combined with {first}",
                "a route has at most one of saml, oidc and oauth; remove the others",
                code="conflicting-fields",
            )


class HTTPSEdgeRouteRead(Read):
    policy: Annotated[Json, Doc("A retired module; always null.")] = None


KIND = Kind(
    spec=HTTPSEdgeRoute,
    read=HTTPSEdgeRouteRead,
    path="/edges/https/{edge_id}/routes",
    list_key="routes",
    id_prefix="edghtsrt_",
    identity=("edge_id", "match_type", "match"),
    unique=True,
    part_of=Parent("HTTPSEdge", field="edge_id", embedded="routes", inline="routes"),
    part_kinds=("IPPolicyRule",),  # an IP policy without all of its rules may admit any address
    modules=Modules(traffic="backend", exclusive=_LOGINS),
    access=PathOf(),
    health=serving.check_modules,
    example="""
        edge_id: {ref: HTTPSEdge/app}
        match_type: path_prefix
        match: /hooks/
        backend: {backend_id: {ref: TunnelGroupBackend/hooks}}
        webhook_verification: {provider: github, secret: {from_env: GITHUB_WEBHOOK_SECRET}}
        traffic_policy:
          value:
            on_http_response:
              - actions: [{type: compress-response, config: {algorithms: [gzip]}}]
    """,
)

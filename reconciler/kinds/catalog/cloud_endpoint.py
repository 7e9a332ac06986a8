"""Cloud endpoint."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import access, serving, syntax
from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.fields import Description, Metadata, NonEmpty, TrafficPolicy, Url, find_repeated, plain
from reconciler.model.access import WayIn, read_texts
from reconciler.model.fields.annotations import DefaultBy, ServerDefault, Unordered
from reconciler.model.fields.spec import Read, Ref, Spec
from reconciler.model.kind import Endpoint, Kind, Wire
from reconciler.model.problem import Finding, Severity
from reconciler.model.value import Json

_BINDINGS = ("public", "internal", "kubernetes")


def _is_internal(url: Json) -> bool:
    return any(host.endswith(".internal") for host in syntax.hosts_of_url(url))


def _default_bindings(url: Json) -> Json:
    return ["internal"] if _is_internal(url) else ["public"]


class CloudEndpoint(Spec):
    """An endpoint that the platform itself serves: a URL, and the traffic policy that handles its traffic."""

    url: Annotated[
        Url,
        Doc(
            "The URL, as `scheme://host[:port]` without a path. The scheme is http, https, tcp or tls; tcp "
            "requires a port. The host must be reserved unless it is internal."
        ),
    ]
    traffic_policy: Annotated[
        TrafficPolicy,
        access.FILTERS,
        Doc("The traffic policy document: text, `{from_file: PATH}`, or inline YAML."),
    ]
    description: Description = ""
    metadata: Metadata = ""
    bindings: Annotated[
        list[NonEmpty],
        Unordered,
        ServerDefault,
        DefaultBy("url", _default_bindings),
        Doc(
            "Where the endpoint can be reached: `public`, `internal` or `kubernetes`. Hosts below "
            "`.internal` must have the binding `internal` (their default), and other hosts must not."
        ),
    ] = ["public"]
    pooling_enabled: Annotated[
        bool,
        Doc(
            "Whether several endpoints may share the URL and its traffic. All endpoints of a URL must have "
            "the same value."
        ),
    ] = False

    def findings(self) -> Iterator[Finding]:
        yield from policies.findings(self.traffic_policy, "traffic_policy")
        if not self.bindings:
            yield Finding(
                ("bindings",), "is empty", f"set one of {', '.join(_BINDINGS)}, or remove it", code="empty-list"
            )
        elif "bindings" in self.model_fields_set:
            yield from self._check_internal()
            yield from self._check_kubernetes()
        yield from find_repeated(self.bindings, "bindings")
        for index, binding in enumerate(self.bindings):
            if plain(binding) not in (None, *_BINDINGS):
                yield Finding(
                    ("bindings", index),
                    f"unknown binding {binding!r}",
                    f"the known bindings are {', '.join(_BINDINGS)}",
                    Severity.WARNING,
                    code="unknown-binding",
                )

    def _check_kubernetes(self) -> Iterator[Finding]:
        scheme, separator, _ = (plain(self.url) or "").strip().lower().partition("://")
        if separator and scheme == "https" and "kubernetes" in self.bindings:
            yield Finding(
                ("bindings",),
                "the binding kubernetes is not available for https",
                "use a URL with http, tls or tcp",
                code="binding-mismatch",
            )

    def _check_internal(self) -> Iterator[Finding]:
        if plain(self.url) is None or any(plain(binding) is None for binding in self.bindings):
            return
        if _is_internal(self.url) != ("internal" in self.bindings):
            yield Finding(
                ("bindings",),
                f"{self.url} {'requires' if _is_internal(self.url) else 'cannot have'} the binding internal",
                "remove bindings: hosts below .internal get the binding internal by default, all others public",
                code="binding-mismatch",
            )


class CloudEndpointRead(Read):
    region: str = ""
    updated_at: str = ""
    public_url: str = ""
    proto: str = ""
    scheme: str = ""
    host: str = ""
    port: int = 0
    hostport: str = ""
    domain: Ref | None = None
    tcp_addr: Ref | None = None
    tunnel: Ref | None = None
    edge: Ref | None = None
    upstream_url: str = ""
    upstream_proto: str = ""
    principal: Ref | None = None
    tunnel_session: Ref | None = None
    name: str = ""


KIND = Kind(
    spec=CloudEndpoint,
    read=CloudEndpointRead,
    path="/endpoints",
    list_key="endpoints",
    id_prefix="ep_",
    identity=("url",),
    unique=True,
    endpoint=Endpoint(url="url", shared_while="pooling_enabled"),
    wire=Wire(fixed={"type": "cloud"}),
    access=WayIn(
        lambda fields: read_texts([fields["url"]]),
        lambda fields: read_texts(fields["bindings"]) or _default_bindings(fields["url"]),
        policy="traffic_policy",
    ),
    health=serving.check_endpoint,
    example="""
        url: https://app.example.com
        traffic_policy:
          on_http_request:
            - name: only-get
              expressions: ["req.method != 'GET'"]
              actions:
                - type: deny
                  config: {status_code: 405}
    """,
)

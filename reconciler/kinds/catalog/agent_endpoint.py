"""Endpoint of an agent, opened, updated and closed through the agent's local API."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import access, canonical, serving, syntax
from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.fields import Deferred, Description, Metadata, TrafficPolicy, check_with
from reconciler.model.access import Fields, WayIn, read_texts
from reconciler.model.fields.annotations import (
    Completed,
    DefaultBy,
    EqualAs,
    Exclusive,
    Immutable,
    Mentions,
    ServerDefault,
    SometimesReturned,
)
from reconciler.model.fields.spec import Part, Read, Spec
from reconciler.model.kind import Endpoint, Home, Kind, Wire
from reconciler.model.problem import Finding
from reconciler.model.value import Json


def _read_url(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _default_inspect(url: Json) -> Json:
    return syntax.scheme_of_agent_url(_read_url(url)) in ("http", "https")


def _default_bindings(url: Json) -> list[str]:
    return ["internal"] if syntax.host_of_agent_url(_read_url(url)).endswith(".internal") else ["public"]


class AgentUpstream(Part):
    """The service that the agent forwards to."""

    url: Annotated[
        Annotated[str, check_with(syntax.agent_upstream), Deferred],
        EqualAs(canonical.upstream),
        Doc("The address of the service: a local port, `host:port`, or a URL. tcp and tls require a port."),
    ]
    protocol: Annotated[
        Annotated[Literal["http1", "http2"], Deferred] | None,
        ServerDefault,
        SometimesReturned,
        Doc("The version of HTTP that the service uses. If not set, the agent uses `http1`."),
    ] = None
    proxy_protocol: Annotated[
        Annotated[Literal["1", "2"], Deferred] | None,
        ServerDefault,
        SometimesReturned,
        Doc("The version of the PROXY protocol header that the agent sends. If not set, it sends none."),
    ] = None


class AgentEndpoint(Spec):
    """An endpoint of a running agent, managed through the agent's local API. It ends with the agent: `drift` reports a
    missing endpoint, and the next apply opens it again."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    name: Annotated[
        Annotated[str, check_with(syntax.tunnel_name), Deferred],
        Immutable,
        Doc("The name of the endpoint, unique within the agent."),
    ]
    url: Annotated[
        Annotated[str, check_with(syntax.agent_endpoint_url), Deferred] | None,
        Immutable,
        ServerDefault,
        Exclusive,
        EqualAs(canonical.agent_url),
        Completed(canonical.scheme_alone),
        Mentions(syntax.hosts_of_agent_url),
        Doc(
            "The URL, as `scheme://host[:port]` without a path; a host alone is of https. The scheme is http, "
            "https, tcp or tls. The platform assigns the host of a scheme alone, such as `tcp://`, and an https URL if "
            "not set. The host must be reserved unless it is internal."
        ),
    ] = None
    upstream: AgentUpstream
    bindings: Annotated[
        list[Annotated[Literal["public", "internal", "kubernetes"], Deferred]] | None,
        Immutable,
        ServerDefault,
        SometimesReturned,
        Doc(
            "Where the endpoint can be reached: one of `public`, `internal` and `kubernetes`. Hosts below `.internal` "
            "have the binding `internal`, and other hosts must not; their default is `public`."
        ),
    ] = None
    pooling_enabled: Annotated[
        bool,
        Immutable,
        Doc("Whether several endpoints may share the URL and its traffic, if all of them set it."),
    ] = False
    traffic_policy: Annotated[
        TrafficPolicy | None,
        access.FILTERS,
        Doc("The traffic policy document: text, `{from_file: PATH}`, or inline YAML."),
    ] = None
    inspect: Annotated[
        bool,
        ServerDefault,
        DefaultBy("url", _default_inspect),
        Doc(
            "Whether the agent records requests for inspection: true for http and https unless declared. Not for tcp "
            "and tls, whose connections an agent cannot inspect."
        ),
    ] = True
    description: Annotated[Description, SometimesReturned] = ""
    metadata: Annotated[Metadata, SometimesReturned, Doc("Free-form data for programs.")] = ""

    def findings(self) -> Iterator[Finding]:
        from reconciler.kinds.types import agent_files  # deferred: its import takes long, and few declare an endpoint

        yield from agent_files.check_endpoint(vars(self) | {"upstream": vars(self.upstream)})
        if self.bindings == []:
            yield Finding(("bindings",), "is empty", "set one binding, or remove it", code="empty-list")
        if self.traffic_policy is not None:
            yield from policies.findings(self.traffic_policy, "traffic_policy")
        if self.inspect and "inspect" in self.model_fields_set and not _default_inspect(self.url):
            yield Finding(
                ("inspect",),
                f"does not apply to {syntax.scheme_of_agent_url(_read_url(self.url))}: agents inspect only http",
                "remove it",
                code="field-not-applicable",
            )


class AgentEndpointRead(Read):
    url: str = ""


def _list_urls(fields: Fields) -> Iterator[str]:
    """The URL of an endpoint; none if the platform assigns it."""
    url = fields["url"]
    if isinstance(url, str) and url.partition("://")[2]:
        yield url


KIND = Kind(
    spec=AgentEndpoint,
    read=AgentEndpointRead,
    path="/api/endpoints",
    list_key="endpoints",
    key="name",
    home=Home.AGENT,
    identity=("name",),
    unique=True,
    display_fields=("url",),
    endpoint=Endpoint(shared_while="pooling_enabled"),
    wire=Wire(untimed=True),
    access=WayIn(
        _list_urls,
        lambda fields: read_texts(fields["bindings"]) or _default_bindings(fields["url"]),
        policy="traffic_policy",
        from_agent=True,
    ),
    health=serving.check_agent,
    example="""
        name: shop
        url: https://shop.berlin.example.com
        upstream: {url: "8080"}
        description: The shop in Berlin
        traffic_policy:
          on_http_request:
            - name: only-get
              expressions: ["req.method != 'GET'"]
              actions:
                - type: deny
                  config: {status_code: 405}
    """,
)

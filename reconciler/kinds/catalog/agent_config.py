"""The configuration file of an agent: declared like a resource, rendered to a file and never planned."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.catalog.agent_tunnel import check_address_fields
from reconciler.kinds.rules import canonical, syntax
from reconciler.kinds.types.fields import Deferred, Id, NonEmpty, check_with
from reconciler.model.fields.annotations import EqualAs, RefTo, Sensitive
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Home, Kind
from reconciler.model.problem import Finding


class ConfiguredTunnel(Part):
    """A tunnel that the agent opens when it starts."""

    proto: Annotated[Literal["http", "tcp", "tls"], Deferred, Doc("The protocol of the tunnel.")]
    addr: Annotated[
        Annotated[str, check_with(syntax.upstream), Deferred],
        EqualAs(canonical.upstream),
        Doc("The address that the agent forwards to: a local port, `host:port`, or a URL."),
    ]
    domain: Annotated[
        Annotated[str, check_with(syntax.plain_host), Deferred] | None,
        EqualAs(canonical.tunnel_host),
        Doc("The hostname of the tunnel: a reserved domain, or a name below a reserved wildcard domain. Not for tcp."),
    ] = None
    remote_addr: Annotated[
        Annotated[str, check_with(syntax.hostport), Deferred] | None,
        EqualAs(canonical.tunnel_host),
        Doc("The reserved address of a tcp tunnel, as `host:port`."),
    ] = None
    inspect: Annotated[bool | None, Doc("Whether the agent records requests for inspection.")] = None

    def findings(self) -> Iterator[Finding]:
        yield from check_address_fields(self.proto, self.domain, self.remote_addr)


class AgentConfig(Spec):
    """The configuration file of an agent. `reconciler agent config` writes the file; plans do not include it."""

    version: Annotated[Annotated[str, Deferred] | None, Doc('The version of the file format. If not set: "2".')] = None
    extends: Annotated[
        list[Annotated[Id, RefTo("AgentConfig")]],
        Doc("Other agent configurations to merge into this one. Conflicting values are an error."),
    ] = []
    credential: Annotated[
        Annotated[Id, RefTo("TunnelCredential")] | None,
        Doc("The tunnel credential of the agent. Its delivered token becomes the `authtoken` of the file."),
    ] = None
    authtoken: Annotated[
        NonEmpty | None, Sensitive, Doc("The authtoken itself, instead of `credential`; preferably `{from_env: NAME}`.")
    ] = None
    ingress: Annotated[
        Annotated[Id, RefTo("AgentIngress")] | None,
        Doc("The agent ingress to connect through. One of its regional domains becomes the `server_addr` of the file."),
    ] = None
    region: Annotated[
        NonEmpty | None,
        Doc("The region of the ingress to connect to. Required if the ingress has several regional domains."),
    ] = None
    server_addr: Annotated[NonEmpty | None, Doc("The address that the agent connects to, instead of `ingress`.")] = None
    tunnels: Annotated[
        dict[str, ConfiguredTunnel], Doc("The tunnels that the agent opens when it starts, by name.")
    ] = {}

    def findings(self) -> Iterator[Finding]:
        if self.credential is not None and self.authtoken is not None:
            yield Finding(
                ("authtoken",),
                "cannot be combined with credential",
                "remove authtoken or credential",
                code="conflicting-fields",
            )
        if self.ingress is not None and self.server_addr is not None:
            yield Finding(
                ("server_addr",),
                "cannot be combined with ingress",
                "remove server_addr or ingress",
                code="conflicting-fields",
            )
        if self.region is not None and self.ingress is None:
            yield Finding(
                ("region",),
                "applies only together with ingress",
                "set `ingress: {ref: AgentIngress/NAME}`, or set server_addr instead of region",
                code="field-not-applicable",
            )
        for name in self.tunnels:
            if (wrong := syntax.tunnel_name(name)) is not None:
                what, _, remedy = wrong.partition("; ")
                yield Finding(("tunnels", name), what, remedy, code="invalid-name")


KIND = Kind(
    spec=AgentConfig,
    home=Home.FILE,
    example="""
        credential: {ref: TunnelCredential/berlin}
        ingress: {ref: AgentIngress/connect}
        region: eu
        tunnels:
          agent-api: {proto: http, domain: agent.berlin.example.com, addr: "4040", inspect: false}
    """,
)

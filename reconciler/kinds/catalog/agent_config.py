"""Configuration file of an agent: declared like a resource, and rendered instead of planned."""

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

    proto: Annotated[Literal["http", "tcp", "tls"], Deferred, Doc("What is spoken through it.")]
    addr: Annotated[
        Annotated[str, check_with(syntax.upstream), Deferred],
        EqualAs(canonical.upstream),
        Doc("Where it leads: a local port, or host:port."),
    ]
    domain: Annotated[
        Annotated[str, check_with(syntax.plain_host), Deferred] | None,
        EqualAs(canonical.tunnel_host),
        Doc("Its host name, under a reserved domain."),
    ] = None
    remote_addr: Annotated[
        Annotated[str, check_with(syntax.hostport), Deferred] | None,
        EqualAs(canonical.tunnel_host),
        Doc("The reserved address of a tcp tunnel."),
    ] = None
    inspect: Annotated[bool | None, Doc("False: the agent does not keep what passes through.")] = None

    def findings(self) -> Iterator[Finding]:
        yield from check_address_fields(self.proto, self.domain, self.remote_addr)


class AgentConfig(Spec):
    """What an agent is started with: `reconciler agent config` writes it to a file. No plan touches it."""

    version: Annotated[
        Annotated[str, Deferred] | None, Doc('The version of the file\'s format; "2" where nobody says one.')
    ] = None
    extends: Annotated[
        list[Annotated[Id, RefTo("AgentConfig")]],
        Doc("Others that are merged into it; two that disagree are refused."),
    ] = []
    credential: Annotated[
        Annotated[Id, RefTo("TunnelCredential")] | None,
        Doc("The credential whose delivered token the agent signs in with."),
    ] = None
    authtoken: Annotated[
        NonEmpty | None, Sensitive, Doc("The token itself, best {from_env: NAME}, in the place of a credential.")
    ] = None
    ingress: Annotated[
        Annotated[Id, RefTo("AgentIngress")] | None,
        Doc("The agent ingress it connects through, by one of its regional domains."),
    ] = None
    region: Annotated[NonEmpty | None, Doc("Which regional domain of the ingress; needless where there is one.")] = None
    server_addr: Annotated[
        NonEmpty | None, Doc("Where it connects to, as the agent takes it, in the place of an ingress.")
    ] = None
    tunnels: Annotated[dict[str, ConfiguredTunnel], Doc("The tunnels it opens when it starts, by name.")] = {}

    def findings(self) -> Iterator[Finding]:
        if self.credential is not None and self.authtoken is not None:
            yield Finding(
                ("authtoken",),
                "is a second token beside that of the credential",
                "keep one of them",
                code="conflicting-fields",
            )
        if self.ingress is not None and self.server_addr is not None:
            yield Finding(
                ("server_addr",),
                "is a second address beside that of the ingress",
                "keep one of them",
                code="conflicting-fields",
            )
        if self.region is not None and self.ingress is None:
            yield Finding(
                ("region",),
                "is said of no ingress",
                "name the ingress, or write server_addr",
                code="field-not-applicable",
            )
        for name in self.tunnels:
            if (wrong := syntax.tunnel_name(name)) is not None:
                what, _, remedy = wrong.partition("; ")
                yield Finding(("tunnels", name), what, remedy, code="invalid-name")


KIND = Kind(
    spec=AgentConfig,
    path="",
    list_key="",
    id_prefix="",
    home=Home.FILE,
    example="""
        credential: {ref: TunnelCredential/berlin}
        ingress: {ref: AgentIngress/connect}
        region: eu
        tunnels:
          agent-api: {proto: http, domain: agent.berlin.example.com, addr: "4040", inspect: false}
    """,
)

"""Tunnel of an agent, started and stopped through the agent's local API."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical, syntax
from reconciler.kinds.types.fields import Deferred, check_with
from reconciler.model.fields.annotations import EqualAs, Immutable, Mentions, ReadAs, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Home, Kind
from reconciler.model.problem import Finding
from reconciler.model.value import Json


class AgentTunnel(Spec):
    """A tunnel that runs in an agent. It does not survive the agent's end: that is drift, and apply starts it again."""

    name: Annotated[
        Annotated[str, check_with(syntax.tunnel_name), Deferred], Immutable, Doc("Its name, unique in the agent.")
    ]
    proto: Annotated[
        Annotated[Literal["http", "tcp", "tls"], Deferred],
        Immutable,
        EqualAs(canonical.tunnel_proto),
        Doc("What is spoken through it."),
    ]
    addr: Annotated[
        Annotated[str, check_with(syntax.upstream), Deferred],
        Immutable,
        ReadAs("config.addr"),
        EqualAs(canonical.upstream),
        Doc("Where it leads: a local port, or host:port."),
    ]
    domain: Annotated[
        Annotated[str, check_with(syntax.plain_host), Deferred] | None,
        Immutable,
        ServerDefault,
        ReadAs("public_url"),
        EqualAs(canonical.tunnel_host),
        Mentions(syntax.hosts_of_host),
        Doc("Its host name, under a reserved domain; the platform picks one for whom names none."),
    ] = None
    remote_addr: Annotated[
        Annotated[str, check_with(syntax.hostport), Deferred] | None,
        Immutable,
        ServerDefault,
        ReadAs("public_url"),
        EqualAs(canonical.tunnel_host),
        Mentions(syntax.hosts_of_host),
        Doc("The reserved address of a tcp tunnel; the platform picks one for whom names none."),
    ] = None
    inspect: Annotated[
        bool, Immutable, ReadAs("config.inspect"), Doc("Whether the agent keeps what passes through, to be looked at.")
    ] = True

    def findings(self) -> Iterator[Finding]:
        yield from check_address_fields(self.proto, self.domain, self.remote_addr)


def check_address_fields(proto: str, domain: Json, remote_addr: Json) -> Iterator[Finding]:
    """A tcp tunnel has an address, the others have a host name."""
    if proto == "tcp" and domain is not None:
        yield Finding(
            ("domain",), "a tcp tunnel has no host name of its own", "name its remote_addr", code="field-not-applicable"
        )
    if proto in ("http", "tls") and remote_addr is not None:
        yield Finding(
            ("remote_addr",), f"is for tcp tunnels, and this is {proto}", "name its domain", code="field-not-applicable"
        )


class AgentTunnelRead(Read):
    public_url: str = ""


KIND = Kind(
    spec=AgentTunnel,
    read=AgentTunnelRead,
    path="/api/tunnels",
    list_key="tunnels",
    id_prefix="",
    identity=("name",),
    unique=True,
    key="name",
    carries_traffic=True,
    untimed=True,
    home=Home.AGENT,
    example="""
        name: orders
        proto: http
        domain: orders.berlin.example.com
        addr: "8080"
        inspect: false
    """,
)

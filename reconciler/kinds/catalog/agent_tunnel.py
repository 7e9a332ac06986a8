"""Tunnel of an agent, started and stopped through the agent's local API."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import access, canonical, serving, syntax
from reconciler.kinds.types.fields import Deferred, check_with
from reconciler.model.access import Fields, WayIn
from reconciler.model.fields.annotations import EqualAs, Exclusive, Immutable, Mentions, ReadAs, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Home, Kind, Wire
from reconciler.model.problem import Finding


class AgentTunnel(Spec):
    """A tunnel of a running agent, managed through the agent's local API. It ends with the agent: `drift` reports a
    missing tunnel, and the next apply starts it again."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    name: Annotated[
        Annotated[str, check_with(syntax.tunnel_name), Deferred],
        Immutable,
        Doc("The name of the tunnel, unique within the agent."),
    ]
    proto: Annotated[
        Annotated[Literal["http", "tcp", "tls"], Deferred],
        Immutable,
        EqualAs(canonical.tunnel_proto),
        Doc("The protocol of the tunnel."),
    ]
    addr: Annotated[
        Annotated[str, check_with(syntax.upstream), Deferred],
        Immutable,
        ReadAs("config.addr"),
        EqualAs(canonical.upstream),
        Doc("The address that the agent forwards to: a local port, `host:port`, or a URL."),
    ]
    domain: Annotated[
        Annotated[str, check_with(syntax.plain_host), Deferred] | None,
        Immutable,
        Exclusive,
        ServerDefault,
        ReadAs("public_url"),
        EqualAs(canonical.tunnel_host),
        Mentions(syntax.hosts_of_host),
        Doc(
            "The hostname of the tunnel: a reserved domain, or a name below a reserved wildcard domain. If "
            "not set, the platform assigns one. Not for tcp."
        ),
    ] = None
    remote_addr: Annotated[
        Annotated[str, check_with(syntax.hostport), Deferred] | None,
        Immutable,
        Exclusive,
        ServerDefault,
        ReadAs("public_url"),
        EqualAs(canonical.tunnel_host),
        Mentions(syntax.hosts_of_host),
        Doc("The reserved address of a tcp tunnel, as `host:port`. If not set, the platform assigns one."),
    ] = None
    inspect: Annotated[
        bool | None,
        Immutable,
        ServerDefault,  # agents answer true for http, false for tcp, and either for tls
        ReadAs("config.inspect"),
        Doc(
            "Whether the agent records requests for inspection. If not set, the agent decides: it records the requests "
            "of http tunnels. Not for tcp and tls, whose connections an agent cannot inspect."
        ),
    ] = None

    def findings(self) -> Iterator[Finding]:
        from reconciler.kinds.types import agent_files  # deferred: its import takes long, and few declare a tunnel

        yield from agent_files.check_address_fields(self.proto, self.domain, self.remote_addr)
        yield from agent_files.check_upstream(self.proto, self.addr)
        if self.proto in ("tcp", "tls") and self.inspect is True:
            yield Finding(
                ("inspect",),
                f"does not apply to a {self.proto} tunnel: agents inspect only http",
                "remove it",
                code="field-not-applicable",
            )


class AgentTunnelRead(Read):
    public_url: str = ""


def _urls(fields: Fields) -> Iterator[str]:
    """The URL of a tunnel; none if the platform assigns it. A tunnel of http is at https, unless an agent that was
    started with `schemes: [http]` shows another URL."""
    url = fields.get("public_url")
    if isinstance(url, str) and "://" in url:
        yield url
        return
    host = fields["remote_addr"] if fields["proto"] == "tcp" else fields["domain"]
    if isinstance(host, str):
        yield f"{'https' if fields['proto'] == 'http' else fields['proto']}://{host}"


KIND = Kind(
    spec=AgentTunnel,
    read=AgentTunnelRead,
    path="/api/tunnels",
    list_key="tunnels",
    key="name",
    home=Home.AGENT,
    identity=("name",),
    unique=True,
    display_fields=("addr",),
    wire=Wire(untimed=True),
    access=WayIn(_urls, live_url="public_url", from_agent=True),
    health=serving.check_agent,
    example="""
        name: orders
        proto: http
        domain: orders.berlin.example.com
        addr: "8080"
        inspect: false
    """,
)

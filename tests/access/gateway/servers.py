"""What an account serves: edges, cloud endpoints and agents, by binding, scheme, host and port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.access.gateway.messages import PORTS, Binding

Account = Mapping[str, list[dict[str, Any]]]
Sort = Literal["https-edge", "tls-edge", "tcp-edge", "cloud", "agent"]
Key = tuple[Binding, str, int, str]


@dataclass(frozen=True, slots=True)
class Server:
    """One object that serves one host, which may be a wildcard, at one binding."""

    sort: Sort
    id: str
    scheme: str
    host: str
    port: int
    binding: Binding
    object: Mapping[str, Any]
    pools: bool = False

    @property
    def is_edge(self) -> bool:
        return self.sort.endswith("-edge")


def normal_host(host: str) -> str:
    """A host in lower case, without a dot or a port at its end."""
    name, _, port = host.rpartition(":")
    return (name if port.isdigit() and name else host).lower().rstrip(".")


def split_url(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL, with the scheme's default port; `*` is a legal label."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rstrip("/").rpartition(":") if ":" in rest else (rest.rstrip("/"), "", "")
    return scheme.lower(), normal_host(host), int(port) if port else PORTS.get(scheme.lower(), 0)


def find_servers(account: Account) -> Iterator[Server]:
    """Everything that serves traffic. The endpoints that the platform lists for edges are those edges, and those for
    agents are served here unless the agent's own tunnel or endpoint of the same URL is in the account."""
    for edge in account.get("HTTPSEdge", ()):
        for host, port in _hostports(edge):
            yield Server("https-edge", edge["id"], "https", host, port, "public", edge)
            yield Server("https-edge", edge["id"], "http", host, 80, "public", edge)
    for edge in account.get("TLSEdge", ()):
        for host, port in _hostports(edge):
            yield Server("tls-edge", edge["id"], "tls", host, port, "public", edge)
    for edge in account.get("TCPEdge", ()):
        for host, port in _hostports(edge):
            yield Server("tcp-edge", edge["id"], "tcp", host, port, "public", edge)
    agents = [*_find_agents(account)]
    yield from agents
    places = {(agent.scheme, agent.host, agent.port) for agent in agents}
    for endpoint in account.get("CloudEndpoint", ()):
        place = split_url(endpoint["url"])
        sort = endpoint.get("type") or "cloud"
        if sort == "cloud":
            yield from _serve_endpoint("cloud", endpoint["id"], place, endpoint)
        elif sort != "edge" and place not in places:
            yield from _serve_endpoint("agent", endpoint["id"], place, endpoint)


def _find_agents(account: Account) -> Iterator[Server]:
    for tunnel in account.get("AgentTunnel", ()):
        if tunnel.get("public_url"):
            yield Server("agent", tunnel["name"], *split_url(tunnel["public_url"]), "public", tunnel)
    for endpoint in account.get("AgentEndpoint", ()):
        yield from _serve_endpoint("agent", endpoint["name"], split_url(endpoint["url"]), endpoint)


def _serve_endpoint(
    sort: Sort, identity: str, place: tuple[str, str, int], endpoint: Mapping[str, Any]
) -> Iterator[Server]:
    bindings = endpoint.get("bindings") or ["internal" if place[1].endswith(".internal") else "public"]
    for binding in bindings:
        yield Server(sort, identity, *place, binding, endpoint, bool(endpoint.get("pooling_enabled")))


def _hostports(edge: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for hostport in edge.get("hostports") or ():
        host, _, port = hostport.rpartition(":")
        yield host.lower(), int(port)


def patterns(host: str) -> Iterator[str]:
    """The names under which a host may be served, the most specific first: itself, then wildcards above it."""
    yield host
    labels = host.split(".")
    for index in range(1, len(labels)):
        if (pattern := "*." + ".".join(labels[index:])) != host:
            yield pattern


def is_always_online(servers: list[Server]) -> bool:
    """Whether a host is served whether or not agents run: by an edge or a cloud endpoint."""
    return any(server.sort != "agent" for server in servers)


def conflict(servers: list[Server]) -> str:
    """The error code of several objects on one host that are no pool, or empty."""
    if len(servers) < 2:
        return ""
    sorts = {server.sort for server in servers}
    if any(server.is_edge for server in servers):
        return "6020" if "agent" in sorts else "6027" if "cloud" in sorts else "7122"
    if all(server.pools for server in servers):
        return ""
    return "6026" if sorts == {"cloud", "agent"} else "6030"

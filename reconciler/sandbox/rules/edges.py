"""Validation of endpoints, edges and routes, and the endpoints of edges. `modules` validates their modules."""

from __future__ import annotations

from urllib.parse import urlsplit

from reconciler.sandbox.base import certificates, derive, vocabulary
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause
from reconciler.sandbox.wire.responses import ref

REQUIRED: dict[str, dict[str, Cause]] = {
    "CloudEndpoint": {"url": refusal.ENDPOINT_REQUIRED, "traffic_policy": refusal.ENDPOINT_REQUIRED},
    "HTTPSEdgeRoute": {"match_type": refusal.ROUTE_MATCH_TYPE, "match": refusal.ROUTE_MATCH_MISSING},
}
UNCHANGED: dict[str, Cause] = {
    "CloudEndpoint": refusal.ENDPOINT_UNCHANGED,
}


SCHEMES = {"TCPEdge": "tcp", "TLSEdge": "tls", "HTTPSEdge": "https"}  # of the endpoints of an edge
_SCHEMES = ("http", "https", "tcp", "tls")
_BESIDE = ("TLSEdge", "https")  # the only kind of edge and scheme of endpoint that may share a hostport


def _check_endpoint(draft: Draft, world: World) -> None:
    doc = draft.doc
    refusal.check_choice(draft.supplied.get("type", "cloud"), ("cloud",), refusal.ENDPOINT_TYPE)
    doc["url"] = _normalize_url(doc["url"])
    scheme, host = doc["url"].partition(":")[0], urlsplit(doc["url"]).hostname or ""
    if draft.before is not None:
        old = draft.before["url"].partition(":")[0]
        if old != scheme:
            raise refusal.ENDPOINT_SCHEME(old=old, new=scheme)
    _check_pool(draft, world)
    bindings = doc["bindings"]
    for binding in bindings:
        refusal.check_choice(binding, vocabulary.BINDINGS, refusal.BINDING_UNKNOWN)
        if bindings.count(binding) > 1:
            raise refusal.BINDING_REPEATED(value=binding)
    internal = host.endswith(".internal")
    if bindings and internal != ("internal" in bindings):
        raise refusal.BINDING_INTERNAL(host=host)
    if "kubernetes" in bindings and scheme not in ("http", "tls", "tcp"):
        raise refusal.BINDING_KUBERNETES(scheme=scheme)
    wrong = vocabulary.wrong_policy(doc["traffic_policy"])
    if wrong is not None:
        raise refusal.ENDPOINT_POLICY(why=wrong)
    hostport = f"{host}:{urlsplit(doc['url']).port or derive.DEFAULT_PORTS.get(scheme)}"
    edge = world.database.find_by_name("hostport", hostport) if "url" in draft.supplied else None
    if edge is not None and (edge.collection, scheme) != _BESIDE:
        raise refusal.ENDPOINT_DUPLICATE(value=doc["url"])
    if internal or "kubernetes" in bindings:
        return
    if scheme == "tcp":
        if world.address_of(hostport) is None:
            raise refusal.ENDPOINT_UNRESERVED(host=host)
    elif world.domain_of(host) is None:
        raise refusal.ENDPOINT_UNRESERVED(host=host)


def _check_pool(draft: Draft, world: World) -> None:
    """Rejects endpoints with one URL unless all of them have `pooling_enabled`."""
    url, names = draft.doc["url"], world.database
    if draft.doc["pooling_enabled"]:
        if (
            names.has_name_of_other("url", url, draft.id)
            and (alone := names.find_by_name("url", url))
            and alone.id != draft.id
        ):
            raise refusal.POOLING_BESIDE_ONE(url=url)
    elif names.has_name_of_other("pool", f"{url} ", draft.id):
        raise refusal.NO_POOLING_BESIDE_POOL(url=url)


def _normalize_url(text: str) -> str:
    """A URL in normal form: lower case, without the default port. Raises Refusal for an invalid URL."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise refusal.ENDPOINT_URL(url=text) from error
    scheme, host = parts.scheme, vocabulary.host(parts.hostname or "")
    # Anything besides these three, such as a path, a fragment or a user name, is invalid.
    whole = f"{scheme}://{parts.hostname}" + ("" if port is None else f":{port}")
    if text.lower() == f"{whole}/":
        raise refusal.TRAILING_SLASH(url=text.rstrip("/"))
    if scheme not in _SCHEMES or text.lower() != whole:
        raise refusal.ENDPOINT_URL(url=text)
    if scheme == "tcp" and port is None:
        raise refusal.ENDPOINT_PORT(url=text)
    if not vocabulary.is_hostport(f"{host}:{443 if port is None else port}"):
        raise refusal.ENDPOINT_URL(url=text)
    return f"{scheme}://{host}" + ("" if port in (None, derive.DEFAULT_PORTS.get(scheme)) else f":{port}")


def _check_tcp_edge(draft: Draft, world: World) -> None:
    for value in _normalize_hostports(draft, world):
        if world.address_of(value) is None:
            domain = world.domain_of(value.rpartition(":")[0])
            raise (refusal.HOSTPORT_ADDRESS if domain is None else refusal.HOSTPORT_OF_DOMAIN)(value=value)


def _check_domain_edge(draft: Draft, world: World) -> None:
    for value in _normalize_hostports(draft, world):
        if world.address_of(value) is not None:
            tls = draft.kind.name == "TLSEdge"
            raise (refusal.TLS_HOSTPORT_OF_ADDRESS if tls else refusal.HTTPS_HOSTPORT_OF_ADDRESS)(value=value)
        host, _, port = value.rpartition(":")
        if port != "443":
            raise refusal.HOSTPORT_PORT(value=value)
        if world.domain_of(host) is None:
            raise refusal.HOSTPORT_DOMAIN(value=value)


def _normalize_hostports(draft: Draft, world: World) -> list[str]:
    for value in draft.doc["hostports"]:
        if not vocabulary.is_hostport(vocabulary.hostport(value)):
            raise refusal.HOSTPORT_MALFORMED(value=value)
    draft.doc["hostports"] = [vocabulary.hostport(value) for value in draft.doc["hostports"]]
    for value in draft.doc["hostports"] if "hostports" in draft.supplied else ():
        if _has_endpoint(draft.kind.name, value, world):
            raise refusal.HOSTPORT_TAKEN(value=value)
    return list(draft.doc["hostports"])


def _has_endpoint(kind: str, hostport: str, world: World) -> bool:
    """Whether the hostport is in use by a cloud endpoint or tunnel that this kind of edge cannot share it with."""
    host, _, port = hostport.rpartition(":")
    for scheme in _SCHEMES:
        url = f"{scheme}://{host if derive.DEFAULT_PORTS.get(scheme) == int(port) else hostport}"
        found = world.database.find_by_name("url", url)
        if (kind, scheme) == _BESIDE and (found is None or "_raw" not in found.body):
            continue  # a cloud endpoint may share the hostport, an agent's endpoint (stored with `_raw`) may not
        if found is not None or world.database.has_name_of_other("pool", f"{url} ", ""):
            return True
    return False


def build_endpoint(edge: Stored, hostport: str, world: World) -> Document:
    """The endpoint of one hostport of an edge, as `GET /endpoints` returns it."""
    scheme, (host, _, port) = SCHEMES[edge.collection], hostport.rpartition(":")
    url = f"{scheme}://{host if derive.DEFAULT_PORTS.get(scheme) == int(port) else hostport}"
    domain, address = world.domain_of(host), world.address_of(hostport)
    return {
        "type": "edge",
        "url": url,
        "public_url": url,
        "proto": scheme,
        "scheme": scheme,
        "host": host,
        "port": int(port),
        "hostport": hostport,
        "edge": ref(edge.id),
        "domain": ref(domain.id) if domain and not address else None,
        "tcp_addr": ref(address.id) if address else None,
        "principal": ref(world.principal),
        "bindings": ["public"],
        "description": edge.body["description"],
        "metadata": edge.body["metadata"],
        "updated_at": certificates.stamp(world.database.now()),
    }


def _check_route(draft: Draft, world: World) -> None:
    if draft.doc["match_type"] not in ("exact_path", "path_prefix"):
        raise refusal.ROUTE_MATCH_TYPE(value=draft.doc["match_type"])
    if not draft.doc["match"].startswith("/"):
        raise refusal.ROUTE_MATCH(value=draft.doc["match"])


RULES: dict[str, Rule] = {
    "CloudEndpoint": _check_endpoint,
    "TCPEdge": _check_tcp_edge,
    "TLSEdge": _check_domain_edge,
    "HTTPSEdge": _check_domain_edge,
    "HTTPSEdgeRoute": _check_route,
}

"""`Account`: the entry points of one state of an account, and the program of each region of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.modules import is_enabled
from reconciler.access.places import Door, Region, find_patterns
from reconciler.access.policies import digest, may_answer
from reconciler.access.programs import Builder
from reconciler.model.access import Authority, NetworkPolicy, NetworkRule, Opener, PathOf, Restriction, Upstream, WayIn
from reconciler.model.kind import Kind
from reconciler.model.value import Secret, reveal_text

_ODD_PATH: Final = re.compile(r"%|//|\?|/\.\.?(/|$)")
"""Paths that have other forms: with escapes, empty or dot segments, or a query. Which form counts is not documented."""
PARTS: Final = {
    "api": "the management API",
    "dashboard": "the dashboard",
    "agent": "sessions of agents",
}
"""The parts of the account that a restriction guards besides endpoints."""


class Resource(Struct, frozen=True):
    """An object of the account.

    key      what references to it contain: an id, or the address of an object that will be created
    name     what people call it; the same in both states, even if the object is replaced
    fields   in canonical form; references are keys of other resources
    stack    the other stack that manages it; empty for an own resource and for one that no stack manages
    origin   what else its manager is: `unmanaged`, or `ephemeral` if an agent has it open outside any stack
    """

    kind: Kind
    key: str
    name: str
    fields: Mapping[str, Any]
    stack: str = ""
    origin: str = ""


class _Routes:
    """The routes of an edge by their paths, in a form of them; of routes with equal paths the first one."""

    def __init__(self, routes: Iterable[Resource], form: Callable[[str], str] = str) -> None:
        self._exact: dict[str, Resource] = {}
        self._prefixes: dict[str, Resource] = {}
        for route in routes:
            kind = self._prefixes if route.fields.get("match_type") == "path_prefix" else self._exact
            kind.setdefault(form(str(route.fields.get("match") or "")), route)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def find(self, path: str) -> Resource | None:
        """The route with the longest match; an exact one before a prefix."""
        if (exact := self._exact.get(path)) is not None:
            return exact
        for length in self._lengths:
            if length <= len(path) and (route := self._prefixes.get(path[:length])) is not None:
                return route
        return None


Serving = tuple[tuple[str, tuple[Resource, ...]], ...]
"""Hosts and wildcards with the objects that serve them."""


class Account:
    """One state of an account. `builder` is shared between states that are compared.

    unread      the kinds whose lists are incomplete, with the reason
    is_partial  the account has more objects: one that is referred to and not among the resources may exist
    """

    def __init__(
        self,
        resources: Iterable[Resource],
        builder: Builder | None = None,
        unread: Mapping[str, str] | None = None,
        *,
        is_partial: bool = False,
    ) -> None:
        self.builder = builder or Builder()
        self.is_partial = is_partial
        self.unread = dict(unread or {})
        self.resources: dict[str, Resource] = {}
        self.doors: dict[Door, dict[str, list[Resource]]] = defaultdict(lambda: defaultdict(list))
        self.routes: dict[str, list[Resource]] = defaultdict(list)
        self._serving: dict[tuple[Door, str], Serving] = {}
        self._are_served: dict[tuple[Door, str], bool] = {}
        self._matches: dict[str, tuple[_Routes, _Routes]] = {}
        self.rules: dict[str, list[Resource]] = defaultdict(list)
        self.restrictions: dict[str, Resource] = {}
        self.openers: dict[str, Resource] = {}
        for resource in resources:
            self._add(resource)

    def _add(self, resource: Resource) -> None:
        role, fields = resource.kind.access, resource.fields
        if role is None:
            return
        self.resources[resource.key] = resource
        if isinstance(role, Upstream | NetworkPolicy):  # found by their keys only
            return
        match role:
            case WayIn():
                for url in (*role.urls(fields), *role.redirects(fields)):
                    for door, host in split_url(str(url), role.bindings(fields)):
                        self.doors[door][host].append(resource)
            case PathOf():
                self.routes[str(fields.get(_parent_field(resource.kind)))].append(resource)
            case NetworkRule():
                self.rules[str(fields.get("ip_policy_id"))].append(resource)
            case Restriction():
                if fields.get("enforced") is True:
                    self.restrictions[str(fields.get("type"))] = resource
            case Opener():
                self.openers[resource.name] = resource

    # --- regions ------------------------------------------------------------------------------------------------------

    def hosts(self) -> Iterator[tuple[Door, str]]:
        """What clients connect to: each declared host or wildcard."""
        for door, hosts in self.doors.items():
            for host in hosts:
                yield door, host

    def list_paths(self, door: Door, host: str) -> set[str]:
        """The paths of the routes that may serve a host."""
        if door.scheme == "http":
            return set()
        return {
            str(route.fields.get("match") or "")
            for _, found in self.list_serving(door, host)
            for resource in found
            for route in self.routes.get(resource.key, ())
        }

    def choose_routes(self, region: Region, path: str) -> tuple[str, ...]:
        """What decides about a path: the routes that serve it, of each edge that covers the host, also of the wildcard
        that begins with the host, which may serve it."""
        serving = self.list_serving(region.door, region.host)
        chosen = [self.find_route(resource.key, path) for _, found in serving for resource in found]
        return tuple(f"{route.key if route is not None else ''} {is_plain}" for route, is_plain in chosen)

    def find_route(self, edge: str, path: str) -> tuple[Resource | None, bool]:
        """The route of an edge, by its key, that serves a path, and whether that is documented: the path has one form,
        and equals that of no other route in lower case."""
        if edge not in self._matches:
            routes = self.routes.get(edge, [])
            self._matches[edge] = _Routes(routes), _Routes(routes, str.lower)
        as_written, in_lower_case = self._matches[edge]
        route = as_written.find(path)
        return route, not _ODD_PATH.search(path) and in_lower_case.find(path.lower()) is route

    def has_way_in(self, region: Region) -> bool:
        """Whether something serves the host of a region: an upstream, or a policy that may answer or forward."""
        key = region.door, region.host
        if (is_served := self._are_served.get(key)) is None:
            is_served = any(self._is_served(found, region.door) for found in self._list_covering(*key))
            self._are_served[key] = is_served
        return is_served

    def find_patterns(self, region: Region) -> list[str]:
        """The declared hosts and wildcards that cover the host of a region, the most specific first."""
        return find_patterns(region.host, self.doors.get(region.door, {}))

    def list_ways_in(self, region: Region) -> list[Resource]:
        """The objects that cover the host of a region, the most specific first."""
        return [*self._list_covering(region.door, region.host)]

    def _list_covering(self, door: Door, host: str) -> Sequence[Resource]:
        return [
            resource for pattern, found in self.list_serving(door, host) if pattern != f"*.{host}" for resource in found
        ]

    # --- questions of a compilation -----------------------------------------------------------------------------------

    def list_serving(self, door: Door, host: str) -> Serving:
        """What covers a host, the most specific first, with the objects in the order of their keys. In the end the
        wildcard that begins with the host, if there is one."""
        if (serving := self._serving.get((door, host))) is None:
            hosts = self.doors.get(door, {})
            patterns = find_patterns(host, hosts)
            if (wildcard := f"*.{host}") in hosts:
                patterns.append(wildcard)
            serving = self._serving[door, host] = tuple(
                (pattern, tuple(sorted(hosts[pattern], key=lambda resource: resource.key))) for pattern in patterns
            )
        return serving

    def find_resource(self, key: str) -> Resource | None:
        return self.resources.get(key)

    def list_rules(self, policy: str) -> Sequence[Resource]:
        """The rules of an IP policy, by its key."""
        return self.rules.get(policy, ())

    def find_restriction(self, part: str) -> Resource | None:
        """The restriction of a part of the account that is enforced."""
        return self.restrictions.get(part)

    def why_unread(self, kind: str) -> str | None:
        return self.unread.get(kind)

    def has_more(self) -> bool:
        return self.is_partial

    # --- others -------------------------------------------------------------------------------------------------------

    def find_authority(self, name: str) -> str | None:
        """The digest of the certificate authority of this name, with or without its kind; None if there is none."""
        for resource in self.resources.values():
            if isinstance(resource.kind.access, Authority) and name in (resource.name, resource.name.partition("/")[2]):
                return identify_authority(resource)
        return None

    def serves_port(self, region: Region) -> bool:
        """Whether the host and port of a region have a way in, with any scheme and from anywhere."""
        others = [door for door in self.doors if door.port == region.door.port]
        return any(self.has_way_in(replace(region, door=door)) for door in others)

    def _is_served(self, resource: Resource, door: Door) -> bool:
        role = role_of(resource)
        if is_redirected(resource, door):
            return False
        if is_served_by_children(resource):
            return any(_has_upstream(route.fields) for route in self.routes.get(resource.key, ()))
        return bool(role.policy) or role.from_agent or _has_upstream(resource.fields)


def identify_authority(resource: Resource) -> str:
    """The digest of a certificate authority's certificate, or its key if that is not known."""
    certificate = resource.fields.get("ca_pem")
    plain = reveal_text(certificate) if isinstance(certificate, str | Secret) else None
    return digest(plain.strip()) if plain else resource.key


def _has_upstream(fields: Mapping[str, Any]) -> bool:
    """Whether an edge or a route has a backend, or a traffic policy that may answer or forward."""
    policy = fields.get("traffic_policy")
    document = policy.get("value") if isinstance(policy, Mapping) and is_enabled(policy) else None
    return is_enabled(fields.get("backend")) or may_answer(document)


def split_url(url: str, bindings: Iterable[str]) -> tuple[tuple[Door, str], ...]:
    """Where a URL is reached, and its host."""
    return _split_url(url, tuple(bindings))


@lru_cache(65536)
def _split_url(url: str, bindings: tuple[str, ...]) -> tuple[tuple[Door, str], ...]:
    return tuple(_read_url(url, bindings))


def _read_url(url: str, bindings: Iterable[str]) -> Iterator[tuple[Door, str]]:
    if "${{" in url:  # known after apply
        scheme, _, host = url.partition("://")
        yield from ((Door(scheme, 0, binding), host) for binding in bindings)
        return
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # no URL: nothing can be reached there
        return
    netloc = parts.netloc or parts.path
    host = netloc.rpartition(":")[0] if port is not None else netloc
    standard = {"http": 80, "https": 443, "tls": 443}.get(parts.scheme, 0)
    for binding in bindings:
        yield Door(parts.scheme, port or standard, binding), host.lower()


def _parent_field(kind: Kind) -> str:
    assert kind.part_of is not None
    return kind.part_of.field


def is_edge(resource: Resource) -> bool:
    """Whether the object is an edge: neither an endpoint of its own policy, nor one of an agent."""
    role = role_of(resource)
    return not (role.policy or role.from_agent)


def is_served_by_children(resource: Resource) -> bool:
    return is_edge(resource) and "backend" not in resource.kind.by_name


def is_redirected(resource: Resource, door: Door) -> bool:
    """Whether the platform redirects all requests at a door: those of plain http to an HTTPS edge."""
    return is_served_by_children(resource) and door.scheme == "http"


def role_of(resource: Resource) -> WayIn:
    assert isinstance(resource.kind.access, WayIn)
    return resource.kind.access

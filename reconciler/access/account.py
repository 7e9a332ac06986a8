"""`Account`: the entry points of one state of an account, and the program of each region of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.modules import is_enabled
from reconciler.access.places import Door, Region, find_patterns
from reconciler.access.policies import digest, may_answer
from reconciler.access.programs import Builder
from reconciler.model.access import Authority, NetworkRule, Opener, PathOf, Restriction, WayIn
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


Matches = dict[tuple[str, bool], Resource]
"""Routes by their path, and whether it is a prefix."""


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
        self._by_match: dict[str, Matches] = {}
        self._in_lower_case: dict[str, Matches] = {}
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
        match role:
            case WayIn():
                for url in role.urls(fields):
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
        patterns = find_patterns(host, self.doors[door]) if door in self.doors else []
        return {
            str(route.fields.get("match") or "")
            for pattern in patterns
            for resource in self.doors[door][pattern]
            for route in self.routes.get(resource.key, ())
        }

    def choose_routes(self, region: Region, path: str) -> tuple[str, ...]:
        """What decides about a path: the routes that serve it, of each edge that covers the host."""
        hosts = self.doors.get(region.door, {})
        chosen = [
            (self.find_route(resource, path), self.is_plain(resource, path))
            for pattern in find_patterns(region.host, hosts)
            for resource in hosts[pattern]
        ]
        return tuple(f"{route.key if route is not None else ''} {is_plain}" for route, is_plain in chosen)

    def find_route(self, edge: Resource, path: str) -> Resource | None:
        """The route of an edge with the longest match; an exact one before a prefix."""
        if edge.key not in self._by_match:
            self._by_match[edge.key] = self._list_matches(edge, str)
        return _find_match(self._by_match[edge.key], path)

    def is_plain(self, edge: Resource, path: str) -> bool:
        """Whether it is documented which route serves a path: it has one form, and equals no other in lower case."""
        if edge.key not in self._in_lower_case:
            self._in_lower_case[edge.key] = self._list_matches(edge, str.lower)
        if _ODD_PATH.search(path):
            return False
        return _find_match(self._in_lower_case[edge.key], path.lower()) is self.find_route(edge, path)

    def _list_matches(self, edge: Resource, form: Callable[[str], str]) -> Matches:
        """The routes of an edge by their path in a form; the first of those with equal paths."""
        return {
            (form(str(route.fields.get("match") or "")), route.fields.get("match_type") == "path_prefix"): route
            for route in reversed(self.routes.get(edge.key, []))
        }

    def has_way_in(self, region: Region) -> bool:
        """Whether something serves the host of a region: an upstream, or a policy that may answer or forward."""
        return any(map(self._is_served, self.list_ways_in(region)))

    def find_patterns(self, region: Region) -> list[str]:
        """The declared hosts and wildcards that cover the host of a region, the most specific first."""
        return find_patterns(region.host, self.doors.get(region.door, {}))

    def list_ways_in(self, region: Region) -> list[Resource]:
        """The objects that cover the host of a region, the most specific first."""
        hosts = self.doors.get(region.door, {})
        patterns = find_patterns(region.host, hosts)
        return [resource for pattern in patterns for resource in hosts[pattern]]

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

    def _is_served(self, resource: Resource) -> bool:
        role = role_of(resource)
        if is_served_by_children(resource):
            return any(_has_upstream(route.fields) for route in self.routes.get(resource.key, ()))
        return bool(role.policy) or role.from_agent or _has_upstream(resource.fields)


def _find_match(matches: Matches, path: str) -> Resource | None:
    if (exact := matches.get((path, False))) is not None:
        return exact
    prefixes = (matches.get((path[:length], True)) for length in range(len(path), -1, -1))
    return next((route for route in prefixes if route is not None), None)


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


def split_url(url: str, bindings: Iterable[str]) -> Iterator[tuple[Door, str]]:
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


def role_of(resource: Resource) -> WayIn:
    assert isinstance(resource.kind.access, WayIn)
    return resource.kind.access

"""What a kind file says about access: which kinds are ways in, and which decide who may use them (`Kind.access`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

Fields = Mapping[str, Any]


def read_list(value: Any) -> list[Any]:
    """The items of a list; none of any other value, which a platform may send."""
    return value if isinstance(value, list) else []


def read_texts(value: Any) -> list[str]:
    """The texts in a list."""
    return [item for item in read_list(value) if isinstance(item, str)]


class WayIn(Struct, frozen=True):
    """Requests enter through the object. Without a policy, an upstream and a backend, its children serve the paths."""

    urls: Callable[[Fields], Iterable[str]]
    """The URLs that an object with these fields serves: `https://host:443`; hosts may be wildcards."""
    bindings: Callable[[Fields], Iterable[str]] = lambda fields: ("public",)
    """Where the URLs can be reached from: `public`, `internal`, `kubernetes`."""
    policy: str = ""
    """The field with the object's own traffic policy, which is not a module."""
    live_url: str = ""
    """The field of responses, if there is one, with the URL that a live object serves, which declared fields may not
    tell. `urls` reads it among the fields of a live object."""
    from_agent: bool = False
    """An agent serves the object while it runs: it is an upstream, and may be offline."""
    redirects: Callable[[Fields], Iterable[str]] = lambda fields: ()
    """The URLs at which the platform redirects every request to others of the object: `http://host`."""


class PathOf(Struct, frozen=True):
    """The object serves paths of its parent, a way in: those of the fields `match` and `match_type`."""


class Upstream(Struct, frozen=True):
    """The object receives traffic."""

    children: Callable[[Fields], Iterable[tuple[str, bool]]] | None = None
    """If it passes traffic on: the ids of the others, and for each whether it certainly gets some."""
    is_documented: Callable[[Fields], bool] = lambda fields: True
    """Whether it is documented who receives the traffic of an object with these fields."""


class Name(Struct, frozen=True):
    """A host or an address for ways in."""


class NetworkPolicy(Struct, frozen=True):
    """A set of network rules, which gates and restrictions refer to."""


class NetworkRule(Struct, frozen=True):
    """A network that a policy allows or denies: the fields `ip_policy_id`, `cidr` and `action`."""


class Restriction(Struct, frozen=True):
    """Restricts the part `type` of the account to the networks of `ip_policy_ids`, if it is `enforced`."""


class Authority(Struct, frozen=True):
    """Signs client certificates; `ca_pem` is its own certificate."""


class Opener(Struct, frozen=True):
    """The holder of the credential may open ways in: those that the rules of `acl` list, or any if there are none."""


Access = WayIn | PathOf | Upstream | Name | NetworkPolicy | NetworkRule | Restriction | Authority | Opener

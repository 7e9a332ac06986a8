"""Exclusive keys: values that only one object may have at a time.

A unique natural key within a kind, a hostport among all edges and endpoints, an authentication module among the routes
of an edge. Endpoints that share a key (pooling) exclude only objects that claim it alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from reconciler.kinds.rules.canonical import hostport_of_url
from reconciler.model.canonical import CanonicalFields
from reconciler.model.fields.annotations import Exclusive
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.snapshot import LiveKey
from reconciler.model.value import Value, canonical, is_known
from reconciler.planning.comparing.canonical_fields import natural_key
from reconciler.planning.matching.index import LiveIndex

ExclusiveKey = tuple[str, bytes]

_HOSTPORTS = "hostports"  # the exclusive field of edges; the URL of an endpoint has the keys of its hostport

KeysOf = Callable[[Kind, CanonicalFields], Iterator[ExclusiveKey]]


def find_holders(index: LiveIndex, keys_of: KeysOf) -> Mapping[ExclusiveKey, list[LiveKey]]:
    """The live objects that hold each key."""
    holders: dict[ExclusiveKey, list[LiveKey]] = defaultdict(list)
    for key, live in sorted(index.by_locator.items()):
        kind = index.kinds[live.kind]
        for exclusive in keys_of(kind, index.form(kind, live)):
            holders[exclusive].append(key)
    return holders


def find_exclusive_keys(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    """The keys that no other object may have."""
    if kind.is_unique(form):
        yield from _find_natural_key(kind, form)
    if kind.parent is not None and any(form.get(name) is not None for name in kind.modules.exclusive):
        # Such modules exclude each other in all children of one parent.
        yield "module", canonical(f"{' or '.join(kind.modules.exclusive)} below {form.get(kind.parent.field)}")
    yield from _find_list_keys(kind, form)


def _find_list_keys(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    flag = kind.endpoint.shared_while
    if flag is not None and form.get(flag) is True:
        return
    for field in kind.fields:
        value: Value = form.get(field.name)
        if Exclusive in field and value is not None:
            # One namespace for all kinds: only one edge of any kind serves a hostport.
            items = value if isinstance(value, list) else [value]
            yield from ((field.name, canonical(item)) for item in items if is_known(item) and not _is_open(field, item))


def _is_open(field: Field, value: Value) -> bool:
    """Whether the platform still completes the value, as another one for each object."""
    return field.completed is not None and field.completed.reduce(value) == value


def _find_natural_key(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    if (key := natural_key(kind, form)) is not None:
        yield kind.name, b"[" + b",".join(key) + b"]"


def find_shared_keys(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    """The keys that objects of the same kind may share, and that no other object may have alone."""
    if kind.unique and not kind.is_unique(form):
        yield from _find_natural_key(kind, form)
    yield from _find_hostport(kind, form, https=False)


def find_https_shared_keys(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    """The hostport of an https url, which some kinds may use beside the object (`beside_https`)."""
    yield from _find_hostport(kind, form, https=True)


def find_https_exclusive_keys(kind: Kind, form: CanonicalFields) -> Iterator[ExclusiveKey]:
    """The hostports that no https url may have."""
    if not kind.endpoint.beside_https:
        yield from _find_list_keys(kind, form)


def _find_hostport(kind: Kind, form: CanonicalFields, *, https: bool) -> Iterator[ExclusiveKey]:
    url = form.get(kind.endpoint.url) if kind.endpoint.url is not None else None
    if isinstance(url, str) and url.startswith("https:") is https and (hostport := hostport_of_url(url)) is not None:
        yield _HOSTPORTS, canonical(hostport)


CONFLICTS: Mapping[KeysOf, tuple[KeysOf, ...]] = {
    find_exclusive_keys: (find_exclusive_keys, find_shared_keys),
    find_shared_keys: (find_exclusive_keys,),
    find_https_exclusive_keys: (find_https_shared_keys,),
    find_https_shared_keys: (find_https_exclusive_keys,),
}
"""For each way to hold a key, the ways to hold it that conflict."""

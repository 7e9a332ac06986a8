"""Lists every way into an account, with who gets through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from reconciler import kinds
from reconciler.access.account import Account
from reconciler.access.compare import analyze
from reconciler.access.entering import EntryPoint
from reconciler.access.places import Door, Region
from reconciler.access.questions import is_public, list_unknown
from reconciler.access.witness import TOO_LARGE
from reconciler.model.access import Opener, WayIn
from reconciler.model.access_entry import AccessEntry


def list_entries(account: Account) -> Iterator[AccessEntry]:
    """Every entry point, ordered by scheme, port, host and path."""
    for entry in sorted(analyze(account), key=lambda entry: entry.region):
        yield describe_entry(account, entry)


def list_unread(account: Account) -> Mapping[str, str]:
    """The kinds that open ways in and whose list is incomplete, with the reason: there may be more entry points."""
    return {
        name: why
        for name, why in account.unread.items()
        if (kind := kinds.find(name)) is not None and isinstance(kind.access, WayIn | Opener)
    }


def describe_entry(account: Account, entry: EntryPoint) -> AccessEntry:
    """An entry point in words."""
    region = entry.region
    ways_in = account.list_ways_in(region)
    stacks = {resource.stack for resource in ways_in}
    origins = {resource.origin for resource in ways_in if not resource.stack}
    public, unknown = is_public(entry.program), list_unknown(entry.program)
    return AccessEntry(
        str(region),
        region.door.scheme,
        region.host,
        region.door.port,
        region.path,
        region.below,
        region.door.binding,
        entry.admits,
        public is not False,
        unknown if public is not None else (*unknown, TOO_LARGE),
        tuple(sorted(entry.uses)),
        ", ".join(sorted(stacks)) if stacks and "" not in stacks else "",
        " and ".join(sorted(origins)) if origins and "" not in origins and "" in stacks else "",
    )


def conceal_others(entries: Iterable[AccessEntry]) -> Iterator[AccessEntry]:
    """The entry points; those that only objects of other stacks serve by host, and without their gates."""
    hosts: set[str] = set()
    for entry in entries:
        if not entry.stack:
            yield entry
            continue
        host = str(Region(Door(entry.scheme, entry.port, entry.binding), entry.host))
        if host not in hosts:
            hosts.add(host)
            gates = f"gates of stack {entry.stack}"
            yield replace(
                entry, entry_point=host, path="", below=False, admits=gates, public=False, unknown=(), resources=()
            )
